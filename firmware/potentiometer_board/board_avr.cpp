// The board on an ATmega2560 (Arduino Mega 2560, 16 MHz): registers, interrupts, and the loop that feeds the core.
//
//   USART0 (USB)            host
//   USART1 (pins 18, 19)    AX-12A at 1 Mbit/s, half duplex through a buffer; pin 2 (PE4) is high while it sends
//   A0 ... A15              wipers of the potentiometers
//   pin 13 (PB7)            changes with every turn of the loop: its time can be seen at an oscilloscope
//
// The converter has 10 bits; 16 conversions are added up for 12, which takes 0.83 ms a channel. The watchdog of the
// processor restarts it after 120 ms in which the loop did not turn, and a start stops all servos.
#ifdef __AVR__

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/wdt.h>
#include <util/atomic.h>

#include "board_core.h"

#ifndef BOARD_CHANNELS
#define BOARD_CHANNELS 12
#endif
#ifndef BOARD_HOST_BAUD
#define BOARD_HOST_BAUD 115200
#endif
#ifndef F_CPU
#define F_CPU 16000000UL
#endif

namespace {

constexpr uint32_t SERVO_BAUD = 1000000;
constexpr uint8_t ANSWER_MS = 4;  // 0.6 ms on the wire, 0.5 ms of return delay as delivered, and the grain of 1 ms
constexpr uint8_t SAMPLES = 16;

constexpr uint16_t divider(uint32_t baud) { return static_cast<uint16_t>((F_CPU / 4 / baud - 1) / 2); }

/// Bytes between an interrupt and the loop; SIZE is a power of two up to 128.
template <uint8_t SIZE>
struct Ring {
    volatile uint8_t bytes[SIZE];
    volatile uint8_t first, end;

    bool empty() const { return first == end; }
    uint8_t free_space() const { return static_cast<uint8_t>(SIZE - 1 - ((end - first) & (SIZE - 1))); }
    void put(uint8_t byte) {
        bytes[end] = byte;
        end = (end + 1) & (SIZE - 1);
    }
    uint8_t take() {
        const uint8_t byte = bytes[first];
        first = (first + 1) & (SIZE - 1);
        return byte;
    }
};

Ring<128> host_in, host_out, servo_in, servo_out;
volatile uint32_t milliseconds;
volatile uint16_t converted[BOARD_CHANNELS];
board::Board core;

void to_host(void*, const uint8_t* data, uint8_t size) {
    if (host_out.free_space() < size) return;  // a host that asks faster than the wire carries gets no answer
    for (uint8_t i = 0; i < size; i++) host_out.put(data[i]);
    UCSR0B |= _BV(UDRIE0);
}

void to_servos(void*, const uint8_t* data, uint8_t size) {
    while (servo_out.free_space() < size) {}  // at most 0.6 ms: the wire empties it
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
        UCSR1B &= ~_BV(RXEN1);
        PORTE |= _BV(PE4);
        for (uint8_t i = 0; i < size; i++) servo_out.put(data[i]);
        UCSR1B |= _BV(UDRIE1);
    }
}

void select_input(uint8_t channel) {
    ADCSRB = channel > 7 ? _BV(MUX5) : 0;
    ADMUX = _BV(REFS0) | (channel & 7);  // reference: supply of the potentiometers
}

void set_up_registers() {
    DDRB |= _BV(PB7);
    DDRE |= _BV(PE4);
    UCSR0A = _BV(U2X0);
    UBRR0 = divider(BOARD_HOST_BAUD);
    UCSR0C = _BV(UCSZ01) | _BV(UCSZ00);
    UCSR0B = _BV(RXEN0) | _BV(TXEN0) | _BV(RXCIE0);
    UCSR1A = _BV(U2X1);
    UBRR1 = divider(SERVO_BAUD);
    UCSR1C = _BV(UCSZ11) | _BV(UCSZ10);
    UCSR1B = _BV(RXEN1) | _BV(TXEN1) | _BV(RXCIE1) | _BV(TXCIE1);
    TCCR0A = _BV(WGM01);
    OCR0A = F_CPU / 64 / 1000 - 1;
    TIMSK0 = _BV(OCIE0A);
    TCCR0B = _BV(CS01) | _BV(CS00);
    select_input(0);
    ADCSRA = _BV(ADEN) | _BV(ADIE) | _BV(ADSC) | _BV(ADPS2) | _BV(ADPS1);  // 250 kHz: 52 us a conversion
}

uint32_t now() {
    uint32_t value;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) { value = milliseconds; }
    return value;
}

}  // namespace

ISR(TIMER0_COMPA_vect) { milliseconds++; }

ISR(ADC_vect) {
    static uint8_t channel, taken;
    static uint16_t sum;
    sum += ADC;
    if (++taken == SAMPLES) {
        converted[channel] = sum >> 2;
        sum = taken = 0;
        channel = channel + 1 < BOARD_CHANNELS ? channel + 1 : 0;
        select_input(channel);
    }
    ADCSRA |= _BV(ADSC);
}

ISR(USART0_RX_vect) {
    const bool whole = !(UCSR0A & (_BV(FE0) | _BV(DOR0)));
    const uint8_t byte = UDR0;
    if (whole && host_in.free_space()) host_in.put(byte);
}

ISR(USART0_UDRE_vect) {
    UDR0 = host_out.take();
    if (host_out.empty()) UCSR0B &= ~_BV(UDRIE0);
}

ISR(USART1_RX_vect) {
    const uint8_t byte = UDR1;
    if (servo_in.free_space()) servo_in.put(byte);
}

ISR(USART1_UDRE_vect) {
    UDR1 = servo_out.take();
    if (servo_out.empty()) UCSR1B &= ~_BV(UDRIE1);
}

ISR(USART1_TX_vect) {
    if (!servo_out.empty()) return;
    PORTE &= ~_BV(PE4);
    UCSR1B |= _BV(RXEN1);
}

int main() {
    MCUSR = 0;  // after a restart by the watchdog it would go on with 15 ms
    wdt_enable(WDTO_120MS);
    set_up_registers();
    const board::Wires wires = {to_host, to_servos, nullptr};
    core.begin(BOARD_CHANNELS, wires, 0, ANSWER_MS);
    sei();
    for (;;) {
        wdt_reset();
        PINB = _BV(PB7);
        const uint32_t time = now();
        if (!host_in.empty()) core.host_byte(host_in.take(), time);
        while (!servo_in.empty()) core.servo_byte(servo_in.take());
        for (uint8_t i = 0; i < BOARD_CHANNELS; i++) {
            uint16_t counts;
            ATOMIC_BLOCK(ATOMIC_RESTORESTATE) { counts = converted[i]; }
            core.convert(i, counts);
        }
        core.run(time);
    }
}

#endif
