// Messages between board and host, as in docs/hardware.md: framing, CRC-16 and a reader that finds them in any bytes.
#pragma once

#include <stdint.h>

namespace board {

constexpr uint8_t MAX_CHANNELS = 16;
constexpr uint8_t HEAD = 0xFF, FROM_HOST = 0xB0, FROM_BOARD = 0xB1;

enum Flag : uint8_t { STATE = 1, POSITIONS = 2, SETUP = 3, DRIVE = 4, SERVO = 5, REFUSED = 0x7F };

constexpr uint8_t FRAME = 6;  // head, flag, sequence, crc: bytes of every message besides its contents
constexpr uint8_t SETUP_BYTES = 11, SERVO_BYTES = 15;
constexpr uint8_t MAX_REQUEST = FRAME + 2 * MAX_CHANNELS;
constexpr uint8_t MAX_ANSWER = FRAME + 1 + 6 * MAX_CHANNELS;

/// CRC-16 of Dynamixel protocol 2.0 (polynomial 0x8005, start 0, highest bit first).
uint16_t crc16(const uint8_t* data, uint8_t size);

inline uint16_t word_at(const uint8_t* data) { return static_cast<uint16_t>(data[0] | (data[1] << 8)); }

inline void put_word(uint8_t* data, uint16_t value) {
    data[0] = static_cast<uint8_t>(value & 0xFF);
    data[1] = static_cast<uint8_t>(value >> 8);
}

/// Finds requests in a stream of bytes; after a wrong checksum only the first byte counts as wrong.
class RequestReader {
  public:
    void begin(uint8_t channels);
    /// Takes one byte; true where it completes a request, which stays at `message` until the next call.
    bool take(uint8_t byte);
    /// True where bytes that came earlier hold one more request.
    bool more() { return find(); }
    /// Drops an incomplete request after a pause on the line.
    void end_of_burst();

    uint8_t flag() const { return buffer_[2]; }
    uint8_t sequence() const { return buffer_[3]; }
    const uint8_t* contents() const { return buffer_ + 4; }
    bool empty() const { return size_ == 0; }

  private:
    bool find();
    void drop(uint8_t count);
    uint8_t length() const;

    uint8_t buffer_[MAX_REQUEST];
    uint8_t size_, used_, channels_;
};

}  // namespace board
