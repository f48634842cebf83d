// Random bytes, whole and damaged messages, servos that answer well, badly or not, clocks that jump: the core must
// neither crash nor move. Built with AddressSanitizer and UndefinedBehaviorSanitizer by the tests; prints what it did.
//
//     fuzz SEED STEPS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board_core.h"

using namespace board;

namespace {

uint32_t seed;
Board core;
uint32_t now = 0xFFFFF000;  // wraps on the way
unsigned long packets, moves, armed, answers, good_positions;
uint8_t pending[256];
uint8_t pending_size;

uint32_t chance(uint32_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed % below;
}

void broken(const char* law) {
    fprintf(stderr, "broken: %s (mode %d)\n", law, static_cast<int>(core.mode()));
    exit(1);
}

void to_host(void*, const uint8_t* data, uint8_t size) {
    answers++;
    if (size < FRAME || data[0] != HEAD || data[1] != FROM_BOARD) broken("an answer has its head");
    if (crc16(data, size - 2) != word_at(data + size - 2)) broken("an answer has its checksum");
}

// A servo: what it is asked, it answers, mostly.
void to_servos(void*, const uint8_t* data, uint8_t size) {
    packets++;
    uint8_t sum = 0;
    for (uint8_t i = 2; i < size; i++) sum = static_cast<uint8_t>(sum + data[i]);
    if (size != data[3] + 4 || sum != 0xFF) broken("an instruction has its length and checksum");
    const uint8_t id = data[2], instruction = data[4], address = data[5];
    if (instruction == servo::SYNC_WRITE) {
        for (uint8_t i = 7; i + 3 < size; i += 3) {
            const uint16_t speed = word_at(data + i + 1);
            if (speed != 0 && speed != servo::DIRECTION_BIT) {
                moves++;
                if (core.mode() != Mode::ARMED) broken("a servo turns only while the board is armed");
            }
            if ((speed & 1023) > 600) broken("no servo is faster than its limit");
        }
        return;
    }
    if (instruction == servo::WRITE && address == servo::TORQUE_ENABLE && data[6] != 0 && core.mode() != Mode::ARMING)
        broken("torque comes on only while the board arms");
    if (instruction == servo::WRITE && address == servo::MOVING_SPEED && (data[6] | data[7]) != 0)
        broken("a single write never moves a servo");
    if (id == servo::BROADCAST || chance(500) == 0) return;
    uint8_t table[servo::TABLE_BYTES];
    memset(table, 0, sizeof table);
    table[servo::MODEL_NUMBER] = servo::AX_12A;
    table[servo::TORQUE_ENABLE] = chance(300) ? 1 : 0;
    put_word(table + servo::TORQUE_LIMIT, 1023);
    servo::Packet packet(id, chance(300) ? 0 : static_cast<uint8_t>(chance(256)));
    if (instruction == servo::READ)
        for (uint8_t byte : table) packet.add(byte);
    packet.finish();
    if (chance(300) == 0) packet.data[chance(packet.size)] ^= static_cast<uint8_t>(1 << chance(8));
    memcpy(pending, packet.data, packet.size);
    pending_size = packet.size;
}

void send(uint8_t flag, const uint8_t* contents, uint8_t size) {
    uint8_t message[64] = {HEAD, FROM_HOST, flag, static_cast<uint8_t>(chance(256))};
    memcpy(message + 4, contents, size);
    put_word(message + 4 + size, crc16(message, static_cast<uint8_t>(4 + size)));
    size = static_cast<uint8_t>(size + FRAME);
    if (chance(50) == 0) message[chance(size)] ^= static_cast<uint8_t>(1 << chance(8));
    for (uint8_t i = 0; i < size; i++) core.host_byte(message[i], now);
}

void one_request(uint8_t channels) {
    uint8_t contents[2 * MAX_CHANNELS];
    for (uint8_t& byte : contents) byte = static_cast<uint8_t>(chance(256));
    switch (chance(12)) {
        case 0: send(STATE, contents, 0); break;
        case 1:
            if (chance(3) == 0) break;
            contents[0] = static_cast<uint8_t>(chance(channels + 1u));
            contents[1] = static_cast<uint8_t>(contents[0] + 1);
            contents[2] = chance(2) ? 1 : 0;
            put_word(contents + 3, 200);
            put_word(contents + 5, 3900);
            put_word(contents + 7, static_cast<uint16_t>(1 + chance(600)));
            put_word(contents + 9, 1023);
            send(SETUP, contents, SETUP_BYTES);
            break;
        case 2:
            if (chance(10)) contents[0] = 1;
            send(DRIVE, contents, 2);
            break;
        case 3: send(SERVO, contents, 1); break;
        case 4:
            for (uint8_t i = 0; i < chance(60); i++) core.host_byte(static_cast<uint8_t>(chance(256)), now);
            break;
        default:
            for (uint8_t i = 0; i < channels; i++) put_word(contents + 2 * i, static_cast<uint16_t>(chance(4200)));
            good_positions++;
            send(POSITIONS, contents, static_cast<uint8_t>(2 * channels));
            break;
    }
}

}  // namespace

int main(int count, char** arguments) {
    seed = count > 1 ? static_cast<uint32_t>(atol(arguments[1])) * 2654435761u + 1 : 1;
    const long steps = count > 2 ? atol(arguments[2]) : 100000;
    const Wires wires = {to_host, to_servos, nullptr};
    uint8_t channels = 3;
    core.begin(channels, wires, now, 4);
    for (long step = 0; step < steps; step++) {
        if (chance(20000) == 0) core.begin(channels = static_cast<uint8_t>(chance(20)), wires, now, 4);
        const uint8_t real = core.channels();
        if (chance(8) == 0 && real > 0) one_request(real);
        if (chance(100) == 0) core.servo_byte(static_cast<uint8_t>(chance(256)));
        for (uint8_t i = 0; i < real; i++)
            if (chance(3000) == 0) core.convert(i, static_cast<uint16_t>(chance(65536)));
            else if (chance(20) == 0) core.convert(i, static_cast<uint16_t>(1500 + chance(1000)));
        now += chance(5000) == 0 ? chance(2000) : chance(2);
        core.run(now);
        if (pending_size) {
            const uint8_t size = pending_size;
            pending_size = 0;
            for (uint8_t i = 0; i < size; i++) core.servo_byte(pending[i]);
        }
        if (core.mode() == Mode::ARMED) armed++;
    }
    printf("packets %lu moves %lu armed %lu answers %lu positions %lu\n", packets, moves, armed, answers, good_positions);
    return 0;
}
