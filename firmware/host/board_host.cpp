// The board as a process of this machine: its three sides are terminals.
//
//     board_host --servos PATH --converters PATH --link PATH [--channels 12] [--clock own|stdin]
//
// --servos is the bus of the AX-12A, --link the path under which the host finds the board. The potentiometers are those
// of another board that only measures, such as the one of the emulator, which is asked every few milliseconds.
//
// With --clock stdin every byte of the standard input is a millisecond, and one goes to the standard output as soon as
// everybody who was asked has answered: then nothing depends on how busy this machine is.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "board_core.h"

namespace {

constexpr uint8_t ANSWER_MS = 50;  // programs answer here, on a machine that has other things to do
constexpr uint32_t ASK_CONVERTERS_MS = 5, CONVERTERS_LOST_MS = 100;

uint32_t now_ms() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint32_t>(time.tv_sec * 1000 + time.tv_nsec / 1000000);
}

void fail(const char* what, const char* path) {
    fprintf(stderr, "board_host: %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

void make_raw(int file) {
    termios settings;
    if (tcgetattr(file, &settings) != 0) return;
    cfmakeraw(&settings);
    tcsetattr(file, TCSANOW, &settings);
}

int open_port(const char* path) {
    const int file = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (file < 0) fail("cannot open", path);
    make_raw(file);
    return file;
}

int make_terminal(const char* link) {
    const int file = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (file < 0 || grantpt(file) != 0 || unlockpt(file) != 0) fail("no terminal for", link);
    const char* name = ptsname(file);
    const int slave = open(name, O_RDWR | O_NOCTTY);  // stays open, so that hosts may come and go
    if (slave < 0) fail("cannot open", name);
    make_raw(slave);
    unlink(link);
    if (symlink(name, link) != 0) fail("cannot make", link);
    return file;
}

struct Sides {
    int host, servos;
};

void put(int file, const uint8_t* data, uint8_t size) {
    if (write(file, data, size) != size) return;  // a full terminal drops it, as a wire without listener does
}

void to_host(void* context, const uint8_t* data, uint8_t size) { put(static_cast<Sides*>(context)->host, data, size); }

void to_servos(void* context, const uint8_t* data, uint8_t size) {
    put(static_cast<Sides*>(context)->servos, data, size);
}

/// The potentiometers, by the messages of a board that measures them.
class Converters {
  public:
    Converters(int file, uint8_t channels) : file_(file), channels_(channels) {}

    void ask(uint32_t now) {
        if (now - asked_ < (waiting_ ? CONVERTERS_LOST_MS : ASK_CONVERTERS_MS)) return;
        uint8_t request[] = {0xFF, 0xB0, 0x01, 0x00, 0x00, 0x00};
        board::put_word(request + 4, board::crc16(request, 4));
        put(file_, request, sizeof request);
        asked_ = now;
        size_ = 0;
        waiting_ = true;
    }

    bool waiting() const { return waiting_; }

    bool take(uint8_t byte, board::Board& core) {
        if (size_ == sizeof answer_) size_ = 0;
        answer_[size_++] = byte;
        const uint8_t start[] = {0xFF, 0xB1, 0x01};
        if (size_ <= sizeof start && byte != start[size_ - 1]) size_ = byte == start[0] ? 1 : 0;
        const int whole = 7 + 6 * channels_;
        if (size_ < whole) return false;
        if (board::crc16(answer_, static_cast<uint8_t>(whole - 2)) == board::word_at(answer_ + whole - 2))
            for (uint8_t i = 0; i < channels_; i++) core.convert(i, board::word_at(answer_ + 5 + 2 * i));
        size_ = 0;
        waiting_ = false;
        return true;
    }

  private:
    int file_;
    uint8_t channels_;
    uint8_t answer_[board::MAX_ANSWER];
    uint8_t size_ = 0;
    uint32_t asked_ = 0;
    bool waiting_ = false;
};

}  // namespace

int main(int count, char** arguments) {
    const char *servos = nullptr, *converters = nullptr, *link = nullptr;
    int channels = 12;
    bool own_clock = true;
    for (int i = 1; i + 1 < count; i += 2) {
        if (!strcmp(arguments[i], "--servos")) servos = arguments[i + 1];
        if (!strcmp(arguments[i], "--converters")) converters = arguments[i + 1];
        if (!strcmp(arguments[i], "--link")) link = arguments[i + 1];
        if (!strcmp(arguments[i], "--channels")) channels = atoi(arguments[i + 1]);
        if (!strcmp(arguments[i], "--clock")) own_clock = strcmp(arguments[i + 1], "stdin") != 0;
    }
    if (!servos || !converters || !link || channels < 1 || channels > board::MAX_CHANNELS) {
        fprintf(stderr, "usage: board_host --servos PATH --converters PATH --link PATH [--channels 1 to 16] "
                "[--clock own|stdin]\n");
        return 2;
    }
    static board::Board core;
    Sides sides = {make_terminal(link), open_port(servos)};
    const int converter_port = open_port(converters);
    Converters potentiometers(converter_port, static_cast<uint8_t>(channels));
    const board::Wires wires = {to_host, to_servos, &sides};
    uint32_t now = own_clock ? now_ms() : 0;
    bool in_step = false;  // within a millisecond of the standard input
    core.begin(static_cast<uint8_t>(channels), wires, now, ANSWER_MS);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        const int clock = own_clock || in_step ? -1 : STDIN_FILENO;
        pollfd watched[] = {
            {sides.host, POLLIN, 0}, {sides.servos, POLLIN, 0}, {converter_port, POLLIN, 0}, {clock, POLLIN, 0}};
        poll(watched, 4, 1);
        uint8_t bytes[256];
        if (own_clock) now = now_ms();
        if (watched[3].revents) {
            if (read(STDIN_FILENO, bytes, 1) != 1) return 0;
            now++;
            in_step = true;
        }
        ssize_t size = read(sides.host, bytes, sizeof bytes);
        for (ssize_t i = 0; i < size; i++) core.host_byte(bytes[i], now);
        size = read(sides.servos, bytes, sizeof bytes);
        if (size == 0 || (size < 0 && errno != EAGAIN)) return 0;  // the bus is gone: so is the board
        for (ssize_t i = 0; i < size; i++) core.servo_byte(bytes[i]);
        size = read(converter_port, bytes, sizeof bytes);
        for (ssize_t i = 0; i < size; i++) potentiometers.take(bytes[i], core);
        potentiometers.ask(now);
        core.run(now);
        if (in_step && !core.asking() && !potentiometers.waiting()) {
            in_step = false;
            if (write(STDOUT_FILENO, ".", 1) != 1) return 0;
        }
    }
}
