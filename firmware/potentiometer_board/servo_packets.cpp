#include "servo_packets.h"

#include <string.h>

namespace servo {

Packet::Packet(uint8_t id, uint8_t instruction) : size(5) {
    data[0] = data[1] = HEAD;
    data[2] = id;
    data[4] = instruction;
}

Packet& Packet::add(uint8_t byte) {
    if (size < MAX_PACKET - 1) data[size++] = byte;
    return *this;
}

void Packet::finish() {
    data[3] = static_cast<uint8_t>(size - 3);
    uint8_t sum = 0;
    for (uint8_t i = 2; i < size; i++) sum = static_cast<uint8_t>(sum + data[i]);
    data[size++] = static_cast<uint8_t>(~sum);
}

void StatusReader::drop(uint8_t count) {
    size_ = static_cast<uint8_t>(size_ - count);
    memmove(buffer_, buffer_ + count, size_);
}

bool StatusReader::take(uint8_t byte) {
    if (size_ == LARGEST) drop(LARGEST);
    buffer_[size_++] = byte;
    for (;;) {
        // a third 0xFF is no id: the packet begins one byte later
        if (size_ >= 1 && buffer_[0] != HEAD) { drop(1); continue; }
        if (size_ >= 2 && buffer_[1] != HEAD) { drop(1); continue; }
        if (size_ >= 3 && buffer_[2] >= BROADCAST) { drop(1); continue; }
        if (size_ >= 4 && (buffer_[3] < 2 || buffer_[3] > LARGEST - 4)) { drop(1); continue; }
        if (size_ < 4 || size_ < buffer_[3] + 4) return false;
        whole_ = static_cast<uint8_t>(buffer_[3] + 4);
        uint8_t sum = 0;
        for (uint8_t i = 2; i < whole_; i++) sum = static_cast<uint8_t>(sum + buffer_[i]);
        if (sum == 0xFF) {  // the checksum is the complement of the sum of all others
            size_ = 0;      // the bus is half duplex: nothing can follow before the next question
            return true;
        }
        drop(1);
    }
}

}  // namespace servo
