#include "host_messages.h"

#include <string.h>

namespace board {

// Four bits at a time: 32 bytes of table instead of 512. On bytes, as an AVR shifts words bit by bit.
static const uint8_t HIGH_OF_NIBBLE[16] = {0x00, 0x80, 0x80, 0x00, 0x80, 0x00, 0x00, 0x80,
                                           0x80, 0x00, 0x00, 0x80, 0x00, 0x80, 0x80, 0x00};
static const uint8_t LOW_OF_NIBBLE[16] = {0x00, 0x05, 0x0F, 0x0A, 0x1B, 0x1E, 0x14, 0x11,
                                          0x33, 0x36, 0x3C, 0x39, 0x28, 0x2D, 0x27, 0x22};

uint16_t crc16(const uint8_t* data, uint8_t size) {
    uint8_t high = 0, low = 0;
    for (; size > 0; size--, data++) {
        for (uint8_t half = 0; half < 2; half++) {
            const uint8_t nibble = half ? *data & 0x0F : *data >> 4;
            const uint8_t index = static_cast<uint8_t>((high >> 4) ^ nibble);
            high = static_cast<uint8_t>(static_cast<uint8_t>(high << 4) | (low >> 4)) ^ HIGH_OF_NIBBLE[index];
            low = static_cast<uint8_t>(low << 4) ^ LOW_OF_NIBBLE[index];
        }
    }
    return static_cast<uint16_t>((high << 8) | low);
}

void RequestReader::begin(uint8_t channels) {
    channels_ = channels;
    size_ = used_ = 0;
}

bool RequestReader::take(uint8_t byte) {
    drop(used_);
    used_ = 0;
    if (size_ == MAX_REQUEST) drop(1);  // cannot happen: every request fits; the buffer must hold whatever happens
    buffer_[size_++] = byte;
    return find();
}

void RequestReader::end_of_burst() { size_ = used_ = 0; }

void RequestReader::drop(uint8_t count) {
    if (count == 0) return;
    size_ = static_cast<uint8_t>(size_ - count);
    memmove(buffer_, buffer_ + count, size_);
}

// Bytes of the request at the front, 0 for one that does not exist.
uint8_t RequestReader::length() const {
    switch (buffer_[2]) {
        case STATE: return FRAME;
        case POSITIONS: return static_cast<uint8_t>(FRAME + 2 * channels_);
        case SETUP: return FRAME + SETUP_BYTES;
        case DRIVE: return FRAME + 2;
        case SERVO: return FRAME + 1;
        default: return 0;
    }
}

bool RequestReader::find() {
    drop(used_);
    used_ = 0;
    while (size_ > 0) {
        if (buffer_[0] != HEAD || (size_ > 1 && buffer_[1] != FROM_HOST)) {
            drop(1);
            continue;
        }
        if (size_ < 3) return false;
        const uint8_t whole = length();
        if (whole != 0 && size_ < whole) return false;
        if (whole != 0 && crc16(buffer_, whole - 2) == word_at(buffer_ + whole - 2)) {
            used_ = whole;
            return true;
        }
        drop(1);
    }
    return false;
}

}  // namespace board
