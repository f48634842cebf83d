// The core as a shared library for the tests: every byte, count and millisecond comes from the caller.
#include <stdint.h>
#include <string.h>

#include <new>

#include "board_core.h"

namespace {

constexpr uint32_t CAPACITY = 1 << 16;

struct Output {
    uint8_t bytes[CAPACITY];
    uint32_t size;

    void add(const uint8_t* data, uint8_t count) {
        if (size + count > CAPACITY) return;
        memcpy(bytes + size, data, count);
        size += count;
    }
    uint32_t take(uint8_t* to) {
        const uint32_t count = size;
        memcpy(to, bytes, count);
        size = 0;
        return count;
    }
};

struct HostedBoard {
    board::Board core;
    Output to_host, to_servos;
};

void to_host(void* context, const uint8_t* data, uint8_t size) {
    static_cast<HostedBoard*>(context)->to_host.add(data, size);
}

void to_servos(void* context, const uint8_t* data, uint8_t size) {
    static_cast<HostedBoard*>(context)->to_servos.add(data, size);
}

}  // namespace

extern "C" {

uint32_t board_bytes() { return sizeof(HostedBoard); }
uint32_t board_core_bytes() { return sizeof(board::Board); }
uint32_t board_capacity() { return CAPACITY; }

/// memory: board_bytes() of it, aligned as by malloc, whatever is in it.
void board_begin(void* memory, uint8_t channels, uint32_t now_ms, uint8_t answer_ms) {
    HostedBoard* hosted = new (memory) HostedBoard;
    hosted->to_host.size = hosted->to_servos.size = 0;
    const board::Wires wires = {to_host, to_servos, hosted};
    hosted->core.begin(channels, wires, now_ms, answer_ms);
}

void board_host_bytes(void* memory, const uint8_t* data, uint32_t size, uint32_t now_ms) {
    for (uint32_t i = 0; i < size; i++) static_cast<HostedBoard*>(memory)->core.host_byte(data[i], now_ms);
}

void board_servo_bytes(void* memory, const uint8_t* data, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) static_cast<HostedBoard*>(memory)->core.servo_byte(data[i]);
}

void board_convert(void* memory, uint8_t channel, uint16_t counts) {
    static_cast<HostedBoard*>(memory)->core.convert(channel, counts);
}

void board_run(void* memory, uint32_t now_ms) { static_cast<HostedBoard*>(memory)->core.run(now_ms); }

uint32_t board_take_host(void* memory, uint8_t* to) { return static_cast<HostedBoard*>(memory)->to_host.take(to); }
uint32_t board_take_servos(void* memory, uint8_t* to) { return static_cast<HostedBoard*>(memory)->to_servos.take(to); }

uint8_t board_mode(void* memory) { return static_cast<uint8_t>(static_cast<HostedBoard*>(memory)->core.mode()); }
uint8_t board_reason(void* memory) { return static_cast<uint8_t>(static_cast<HostedBoard*>(memory)->core.reason()); }

}  // extern "C"
