// The potentiometer board without its hardware: bytes, counts and the time go in, bytes come out.
//
// It answers the host (docs/hardware.md), and where the host sets it up and arms it, it drives AX-12A servos in wheel
// mode by a position loop on each potentiometer. It knows no clock, port, interrupt or heap; board_avr.cpp and
// host/ connect it. What holds in every state:
//
//  - After a start it drives nothing and has stopped whatever turned: somebody must set it up and arm it.
//  - Without set points from the host for HOST_SILENCE_MS all servos stop; messages with a wrong checksum do not count.
//  - Any doubt (a servo that is silent or lost its torque, a potentiometer out of range or beyond its limits) stops
//    all servos. Stopped means speed zero, sent again in every period; only arming again ends it.
//  - Torque off is repeated until every servo has confirmed it.
#pragma once

#include <stdint.h>

#include "host_messages.h"
#include "position_loop.h"
#include "servo_packets.h"

namespace board {

constexpr uint16_t HOST_SILENCE_MS = 400;  // half a second less what the next period and an exchange may take
constexpr uint16_t BURST_MS = 100;         // pause after which an incomplete request is dropped
constexpr uint16_t POLL_MS = 1;            // servos are read one after the other, at most one per so many ms
constexpr uint8_t MAX_MISSES = 5;          // questions in a row that a servo may leave open
constexpr uint8_t STARTING_STOPS = 10;     // periods after the start in which every servo is told to stop
constexpr uint16_t FULL_SCALE = 4095, SENSOR_LOW = 20, SENSOR_HIGH = 4075;
constexpr uint16_t LIMIT_MARGIN = 32;  // counts beyond the limits that are a fault: 2.4 mm on a spool of 4.85 mm
constexpr uint16_t VELOCITY_ZERO = 32768;
constexpr uint8_t NOWHERE = 0xFF;

enum class Mode : uint8_t { IDLE, ARMING, ARMED, STOPPED, RELEASING };
enum class Reason : uint8_t {
    NONE, HOST_SILENT, REQUESTED, SERVO_SILENT, SERVO_MODEL, SERVO_REFUSES, TORQUE_LOST, SENSOR_BROKEN, LIMIT,
    NOT_ARMED, NOT_SET_UP, BAD_NUMBERS, IN_USE
};
enum class Action : uint8_t { RELEASE, ARM, STOP };

/// Where the bytes of the board go: `context` comes back with every call.
struct Wires {
    void (*to_host)(void* context, const uint8_t* data, uint8_t size);
    void (*to_servos)(void* context, const uint8_t* data, uint8_t size);
    void* context;
};

class Board {
  public:
    /// answer_ms: time for the answer of a servo, wire included.
    void begin(uint8_t channels, const Wires& wires, uint32_t now_ms, uint8_t answer_ms);

    void host_byte(uint8_t byte, uint32_t now_ms);
    void servo_byte(uint8_t byte);
    /// A reading of the converter [0 to 4095].
    void convert(uint8_t channel, uint16_t counts);
    /// To be called as often as possible; the time may wrap.
    void run(uint32_t now_ms);

    Mode mode() const { return mode_; }
    Reason reason() const { return reason_; }
    uint8_t channels() const { return channels_; }
    bool asking() const { return asking_ != NOWHERE; }  // a servo that has not answered yet

  private:
    enum class Step : uint8_t { LOOK, TORQUE_OFF, WHEEL, REST, TORQUE_ON, CONFIRM, DONE };

    struct Channel {
        uint8_t id;
        bool used, opposite, torque, releasing;
        uint8_t misses, errors, voltage, temperature;
        Step step;
        uint16_t low, high, top, torque_limit;
        uint16_t counts, before, desired;
        int32_t velocity;  // 1/256 count/s
        uint16_t model, position, load;
        PositionLoop loop;
    };

    // requests of the host
    void answer(uint8_t flag, uint8_t sequence, const uint8_t* contents);
    void answer_state(uint8_t sequence);
    void answer_servo(uint8_t sequence, uint8_t channel);
    Reason set_up(const uint8_t* contents);
    Reason act(uint8_t action, uint8_t channel);
    Reason take_positions(const uint8_t* contents);
    void send(uint8_t flag, uint8_t sequence, uint8_t* message, uint8_t size);

    // what the servos do
    void tick();
    void arm();
    void armed();
    void stop(Reason reason, uint8_t where);
    void release();
    void release_one(uint8_t index);
    bool steps(const Channel& channel) const;
    bool used_any() const;
    void write_speeds(bool moving);
    void next_exchange(bool polls);
    bool exchange_with(uint8_t channel);
    void ask(uint8_t channel, servo::Packet& packet);
    void answered();
    void missed();
    void take_table(Channel& channel, const uint8_t* table);
    void next_step(uint8_t index);

    Channel channel_[MAX_CHANNELS];
    Wires wires_;
    RequestReader requests_;
    servo::StatusReader statuses_;
    uint32_t now_, ticked_, heard_, commanded_, asked_, polled_;
    Mode mode_;
    Reason reason_;
    uint8_t channels_, answer_ms_, where_, starting_stops_;
    uint8_t turn_, asking_;  // channel that was asked last, and that of the open question or NOWHERE
};

}  // namespace board
