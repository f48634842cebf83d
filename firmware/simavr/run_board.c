// Runs the image of the board in simavr, step by step: every line of standard input is one step
//
//     MICROSECONDS HOST_BYTES SERVO_BYTES [MILLIVOLTS ...]        bytes in hexadecimal, - for none
//
// and answers with one line: =, bytes for the host, bytes for the servos, longest turn of the loop so far in cycles.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_adc.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>

#define ROOM 65536
#define LINE (4 * ROOM)

struct Wire {
    uint8_t out[ROOM];
    size_t sent;
    uint8_t in[ROOM];
    size_t held, given;
    int open;
    avr_irq_t *input;
};

static struct Wire wires[2];
static avr_t *avr;
static avr_cycle_count_t last_turn, longest_turn;

static void take_output(struct avr_irq_t *irq, uint32_t value, void *wire_) {
    struct Wire *wire = wire_;
    (void)irq;
    if (wire->sent < ROOM) wire->out[wire->sent++] = (uint8_t)value;
}

static void give(struct Wire *wire) {
    while (wire->open && wire->given < wire->held) avr_raise_irq(wire->input, wire->in[wire->given++]);
}

static void open_input(struct avr_irq_t *irq, uint32_t value, void *wire_) {
    (void)irq, (void)value;
    ((struct Wire *)wire_)->open = 1;
    give(wire_);
}

static void close_input(struct avr_irq_t *irq, uint32_t value, void *wire_) {
    (void)irq, (void)value;
    ((struct Wire *)wire_)->open = 0;
}

static void count_turn(struct avr_irq_t *irq, uint32_t value, void *unused) {
    (void)irq, (void)value, (void)unused;
    if (last_turn && avr->cycle - last_turn > longest_turn) longest_turn = avr->cycle - last_turn;
    last_turn = avr->cycle;
}

static void connect(struct Wire *wire, char name) {
    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS(name), &flags);
    flags &= ~(uint32_t)(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS(name), &flags);
    wire->input = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_INPUT);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_OUTPUT), take_output, wire);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_OUT_XON), open_input, wire);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_OUT_XOFF), close_input, wire);
    wire->open = 1;
}

static void read_bytes(struct Wire *wire, const char *text) {
    wire->held = wire->given = wire->sent = 0;
    for (; text[0] && text[1] && text[0] != '-' && wire->held < ROOM; text += 2) {
        unsigned value;
        sscanf(text, "%2x", &value);
        wire->in[wire->held++] = (uint8_t)value;
    }
    give(wire);
}

static void write_bytes(const struct Wire *wire) {
    if (wire->sent == 0) putchar('-');
    for (size_t i = 0; i < wire->sent; i++) printf("%02x", wire->out[i]);
    putchar(' ');
}

int main(int count, char **arguments) {
    static char line[LINE];
    elf_firmware_t firmware = {0};
    if (count != 2 || elf_read_firmware(arguments[1], &firmware)) {
        fprintf(stderr, "usage: run_board IMAGE.elf\n");
        return 2;
    }
    avr = avr_make_mcu_by_name("atmega2560");
    avr_init(avr);
    avr->frequency = 16000000;
    avr->vcc = avr->avcc = avr->aref = 5000;
    avr->log = LOG_ERROR;
    avr_load_firmware(avr, &firmware);
    connect(&wires[0], '0');
    connect(&wires[1], '1');
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('B'), 7), count_turn, NULL);
    while (fgets(line, sizeof line, stdin)) {
        char *rest = strtok(line, " \n");
        if (!rest) continue;
        const avr_cycle_count_t end = avr->cycle + 16 * strtoull(rest, NULL, 10);
        const char *host = strtok(NULL, " \n"), *servos = strtok(NULL, " \n");
        read_bytes(&wires[0], host ? host : "-");
        read_bytes(&wires[1], servos ? servos : "-");
        for (int channel = 0; (rest = strtok(NULL, " \n")) && channel < 16; channel++)
            avr_raise_irq(avr_io_getirq(avr, AVR_IOCTL_ADC_GETIRQ, ADC_IRQ_ADC0 + channel), (uint32_t)atoi(rest));
        while (avr->cycle < end) {
            const int state = avr_run(avr);
            if (state == cpu_Done || state == cpu_Crashed) {
                fprintf(stderr, "the processor ended in state %d\n", state);
                return 1;
            }
        }
        printf("= ");
        write_bytes(&wires[0]);
        write_bytes(&wires[1]);
        printf("%llu\n", (unsigned long long)longest_turn);
        fflush(stdout);
    }
    return 0;
}
