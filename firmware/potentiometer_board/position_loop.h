// The position loop of one spool (001, section 7.2): potentiometer counts in, speed of a servo in wheel mode out.
//
//     v = clip(k_p e + s, +-rate),   s <- clip(s + T k_i e, +-rate / 2),   e = desired - measured [counts]
//
// with k_p = 1 / (10 T), k_i = k_p^2 / 4, the law and the gains of tensegrity_driver/spools/position_loop.py at the
// period T of the board. Integers alone: speeds are in 1/256 count/s. s does not grow where the speed is limited.
#pragma once

#include <stdint.h>

namespace board {

constexpr uint8_t PERIOD_MS = 10;
constexpr int32_t ONE = 256;                                          // count/s
constexpr int32_t PROPORTIONAL = ONE * 100 / PERIOD_MS;               // per count: k_p = 0.1 / T
constexpr int32_t INTEGRAL = ONE * 100 * 100 / 4 / PERIOD_MS / 1000;  // per count and period: T k_i
// 0.111 rpm are 0.75776 count/s of a ten-turn potentiometer with 4096 counts on the shaft of the servo
constexpr int32_t SPEED_OF_RAW = 194;     // 0.75776 * 256
constexpr int32_t RAW_OF_SPEED_Q16 = 338;  // 65536 / 194

class PositionLoop {
  public:
    void take_over() { sum_ = requested_ = sent_ = 0; }

    /// Speed for the servo [0.111 rpm], positive where the counts grow.
    ///
    /// desired, measured, low, high: counts. top: largest speed [0.111 rpm]. Beyond a limit it only comes back.
    int16_t update(uint16_t desired, uint16_t measured, uint16_t low, uint16_t high, uint16_t top) {
        const int32_t rate = SPEED_OF_RAW * top;
        const uint16_t least = measured < low ? measured : low, most = measured > high ? measured : high;
        const uint16_t goal = desired < least ? least : desired > most ? most : desired;
        const int32_t error = static_cast<int32_t>(goal) - measured;
        const int32_t cut = requested_ - sent_;
        const bool would_grow = (cut > 0 && error > 0) || (cut < 0 && error < 0);
        if (!would_grow) sum_ = clip(sum_ + INTEGRAL * error, rate / 2);
        requested_ = PROPORTIONAL * error + sum_;
        sent_ = clip(requested_, rate);
        if ((measured >= high && sent_ > 0) || (measured <= low && sent_ < 0)) sent_ = 0;
        return static_cast<int16_t>(clip((sent_ * RAW_OF_SPEED_Q16 + 32768) >> 16, top));
    }

  private:
    static int32_t clip(int32_t value, int32_t most) { return value > most ? most : value < -most ? -most : value; }

    int32_t sum_, requested_, sent_;
};

}  // namespace board
