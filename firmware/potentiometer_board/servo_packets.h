// Packets of Dynamixel protocol 1.0, as the AX-12A speaks it, and the registers of its control table that are used.
#pragma once

#include <stdint.h>

namespace servo {

constexpr uint8_t BROADCAST = 0xFE, HEAD = 0xFF;
constexpr uint8_t READ = 2, WRITE = 3, SYNC_WRITE = 0x83;

// control table of the AX-12A (https://emanual.robotis.com)
constexpr uint8_t MODEL_NUMBER = 0, RETURN_DELAY = 5, CW_LIMIT = 6, CCW_LIMIT = 8, TORQUE_ENABLE = 24, MOVING_SPEED = 32,
                  TORQUE_LIMIT = 34, PRESENT_POSITION = 36, PRESENT_LOAD = 40, PRESENT_VOLTAGE = 42,
                  PRESENT_TEMPERATURE = 43;
constexpr uint8_t TABLE_BYTES = 44;  // everything up to the temperature, read at once
constexpr uint16_t AX_12A = 12;
constexpr uint16_t MAX_RAW = 1023, DIRECTION_BIT = 1024;
constexpr uint8_t INSTRUCTION_ERRORS = 0x08 | 0x10 | 0x40;  // range, checksum, instruction: it was not executed

constexpr uint8_t MAX_PACKET = 72;

/// Builds one instruction packet.
class Packet {
  public:
    Packet(uint8_t id, uint8_t instruction);
    Packet& add(uint8_t byte);
    Packet& add_word(uint16_t value) {
        return add(static_cast<uint8_t>(value & 0xFF)).add(static_cast<uint8_t>(value >> 8));
    }
    /// Adds length and checksum; nothing can be added after it.
    void finish();

    uint8_t data[MAX_PACKET];
    uint8_t size;
};

/// Speed register of a signed speed: bit 10 is the direction (clockwise, negative).
inline uint16_t encode_speed(int16_t speed) {
    return speed < 0 ? static_cast<uint16_t>(DIRECTION_BIT - speed) : static_cast<uint16_t>(speed);
}

/// Finds status packets in a stream of bytes.
class StatusReader {
  public:
    void begin() { size_ = 0; }
    /// Takes one byte; true where it completes a whole packet, which stays until the next call.
    bool take(uint8_t byte);

    uint8_t id() const { return buffer_[2]; }
    uint8_t error() const { return buffer_[4]; }
    const uint8_t* parameters() const { return buffer_ + 5; }
    uint8_t count() const { return static_cast<uint8_t>(buffer_[3] - 2); }

  private:
    void drop(uint8_t count);

    static constexpr uint8_t LARGEST = TABLE_BYTES + 6;
    uint8_t buffer_[LARGEST];
    uint8_t size_, whole_;
};

}  // namespace servo
