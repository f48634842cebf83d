#include "board_core.h"

namespace board {

using servo::Packet;

void Board::begin(uint8_t channels, const Wires& wires, uint32_t now_ms, uint8_t answer_ms) {
    channels_ = channels < MAX_CHANNELS ? channels : MAX_CHANNELS;
    wires_ = wires;
    answer_ms_ = answer_ms;
    now_ = ticked_ = heard_ = commanded_ = asked_ = polled_ = now_ms;
    mode_ = Mode::IDLE;
    reason_ = Reason::NONE;
    where_ = asking_ = NOWHERE;
    turn_ = 0;
    starting_stops_ = STARTING_STOPS;
    requests_.begin(channels_);
    statuses_.begin();
    for (uint8_t i = 0; i < MAX_CHANNELS; i++) {
        channel_[i] = Channel();
        channel_[i].loop.take_over();
    }
}

// -- bytes and counts -------------------------------------------------------------------------------------------------

void Board::host_byte(uint8_t byte, uint32_t now_ms) {
    if (!requests_.empty() && now_ms - heard_ >= BURST_MS) requests_.end_of_burst();
    heard_ = now_ = now_ms;
    for (bool whole = requests_.take(byte); whole; whole = requests_.more())
        answer(requests_.flag(), requests_.sequence(), requests_.contents());
}

void Board::servo_byte(uint8_t byte) {
    if (statuses_.take(byte) && asking_ != NOWHERE && statuses_.id() == channel_[asking_].id) answered();
}

void Board::convert(uint8_t channel, uint16_t counts) {
    if (channel < channels_) channel_[channel].counts = counts < FULL_SCALE ? counts : FULL_SCALE;
}

void Board::run(uint32_t now_ms) {
    now_ = now_ms;
    if (mode_ == Mode::ARMED && now_ - commanded_ >= HOST_SILENCE_MS) stop(Reason::HOST_SILENT, NOWHERE);
    if (asking_ != NOWHERE) {
        if (now_ - asked_ < answer_ms_) return;  // the bus is half duplex: nothing else goes out meanwhile
        missed();
    }
    if (now_ - ticked_ >= PERIOD_MS) {
        ticked_ = now_;
        tick();
    }
    const bool polls = now_ - polled_ >= POLL_MS;
    if (polls) polled_ = now_;
    next_exchange(polls);
}

// -- requests of the host ---------------------------------------------------------------------------------------------

void Board::send(uint8_t flag, uint8_t sequence, uint8_t* message, uint8_t size) {
    message[0] = HEAD;
    message[1] = FROM_BOARD;
    message[2] = flag;
    message[3] = sequence;
    put_word(message + size - 2, crc16(message, size - 2));
    wires_.to_host(wires_.context, message, size);
}

void Board::answer(uint8_t flag, uint8_t sequence, const uint8_t* contents) {
    Reason refusal = Reason::NONE;
    switch (flag) {
        case STATE: answer_state(sequence); return;
        case SERVO:
            if (contents[0] < channels_) {
                answer_servo(sequence, contents[0]);
                return;
            }
            refusal = Reason::BAD_NUMBERS;
            break;
        case POSITIONS: refusal = take_positions(contents); break;
        case SETUP: refusal = set_up(contents); break;
        case DRIVE: refusal = act(contents[0], contents[1]); break;
        default: return;
    }
    uint8_t message[FRAME + 1];
    message[4] = static_cast<uint8_t>(refusal);
    if (refusal == Reason::NONE)
        send(flag, sequence, message, FRAME);
    else
        send(REFUSED, sequence, message, FRAME + 1);
}

void Board::answer_state(uint8_t sequence) {
    uint8_t message[MAX_ANSWER];
    message[4] = channels_;
    uint8_t* word = message + 5;
    for (uint8_t i = 0; i < channels_; i++, word += 2) put_word(word, channel_[i].counts);
    for (uint8_t i = 0; i < channels_; i++, word += 2)
        put_word(word, mode_ == Mode::ARMED ? channel_[i].desired : channel_[i].counts);
    for (uint8_t i = 0; i < channels_; i++, word += 2)
        put_word(word, static_cast<uint16_t>(VELOCITY_ZERO + channel_[i].velocity / ONE));
    send(STATE, sequence, message, static_cast<uint8_t>(FRAME + 1 + 6 * channels_));
}

void Board::answer_servo(uint8_t sequence, uint8_t channel) {
    const Channel& each = channel_[channel];
    uint8_t message[FRAME + SERVO_BYTES];
    message[4] = static_cast<uint8_t>(mode_);
    message[5] = static_cast<uint8_t>(reason_);
    message[6] = where_;
    message[7] = channel;
    message[8] = each.misses;
    message[9] = each.errors;
    message[10] = each.torque;
    put_word(message + 11, each.model);
    put_word(message + 13, each.position);
    put_word(message + 15, each.load);
    message[17] = each.voltage;
    message[18] = each.temperature;
    send(SERVO, sequence, message, sizeof message);
}

Reason Board::take_positions(const uint8_t* contents) {
    if (mode_ != Mode::ARMED) return Reason::NOT_ARMED;
    for (uint8_t i = 0; i < channels_; i++)
        if (channel_[i].used && word_at(contents + 2 * i) > FULL_SCALE) return Reason::BAD_NUMBERS;
    for (uint8_t i = 0; i < channels_; i++) channel_[i].desired = word_at(contents + 2 * i);
    commanded_ = now_;
    return Reason::NONE;
}

Reason Board::set_up(const uint8_t* contents) {
    if (mode_ != Mode::IDLE && mode_ != Mode::STOPPED) return Reason::IN_USE;
    const uint8_t index = contents[0], id = contents[1], sense = contents[2];
    const uint16_t low = word_at(contents + 3), high = word_at(contents + 5), top = word_at(contents + 7);
    const uint16_t torque = word_at(contents + 9);
    if (index >= channels_ || id >= servo::BROADCAST || sense > 1 || low >= high || high > FULL_SCALE || top < 1 ||
        top > servo::MAX_RAW || torque > servo::MAX_RAW)
        return Reason::BAD_NUMBERS;
    for (uint8_t i = 0; i < channels_; i++)
        if (i != index && channel_[i].used && channel_[i].id == id) return Reason::BAD_NUMBERS;
    Channel& each = channel_[index];
    if (each.used && each.id != id && mode_ == Mode::STOPPED) return Reason::IN_USE;  // it would not be stopped any more
    each.id = id;
    each.opposite = sense == 0;
    each.low = low;
    each.high = high;
    each.top = top;
    each.torque_limit = torque;
    each.used = true;
    return Reason::NONE;
}

Reason Board::act(uint8_t action, uint8_t channel) {
    if (action > static_cast<uint8_t>(Action::STOP)) return Reason::BAD_NUMBERS;
    if (!used_any()) return Reason::NOT_SET_UP;
    switch (static_cast<Action>(action)) {
        case Action::RELEASE:
            if (channel == NOWHERE) {
                release();
            } else if (channel < channels_ && channel_[channel].used) {
                release_one(channel);
            } else {
                return Reason::BAD_NUMBERS;
            }
            break;
        case Action::STOP: stop(Reason::REQUESTED, NOWHERE); break;
        case Action::ARM:
            if (mode_ == Mode::RELEASING) return Reason::IN_USE;
            if (mode_ == Mode::IDLE || mode_ == Mode::STOPPED) arm();
            break;
    }
    return Reason::NONE;
}

// -- modes ------------------------------------------------------------------------------------------------------------

bool Board::used_any() const {
    for (uint8_t i = 0; i < channels_; i++)
        if (channel_[i].used) return true;
    return false;
}

void Board::arm() {
    mode_ = Mode::ARMING;
    reason_ = Reason::NONE;
    where_ = NOWHERE;
    for (uint8_t i = 0; i < channels_; i++) {
        channel_[i].step = Step::LOOK;
        channel_[i].releasing = false;
        channel_[i].misses = 0;
    }
}

void Board::armed() {
    mode_ = Mode::ARMED;
    commanded_ = now_;
    for (uint8_t i = 0; i < channels_; i++) {
        channel_[i].desired = channel_[i].counts;  // it holds where it stands (001, section 7.3)
        channel_[i].loop.take_over();
    }
}

void Board::stop(Reason reason, uint8_t where) {
    if (mode_ == Mode::RELEASING || mode_ == Mode::STOPPED) return;  // the first reason is the one to tell
    mode_ = Mode::STOPPED;
    reason_ = reason;
    where_ = where;
    ticked_ = now_ - PERIOD_MS;  // the zero goes out with the next run
}

void Board::release() {
    mode_ = Mode::RELEASING;
    reason_ = Reason::NONE;
    where_ = NOWHERE;
    for (uint8_t i = 0; i < channels_; i++) channel_[i].step = Step::TORQUE_OFF;
    ticked_ = now_ - PERIOD_MS;
}

// One servo lets go, for one that does not obey; the others stop, as they pull on the same body.
void Board::release_one(uint8_t index) {
    if (mode_ == Mode::RELEASING) return;
    stop(Reason::REQUESTED, index);
    channel_[index].step = Step::TORQUE_OFF;
    channel_[index].releasing = true;
}

void Board::tick() {
    for (uint8_t i = 0; i < channels_; i++) {
        Channel& each = channel_[i];
        if (starting_stops_ > 0) each.before = each.counts;  // the converters have only just begun
        const int32_t moved = ONE * 1000 / PERIOD_MS * (static_cast<int32_t>(each.counts) - each.before);
        each.velocity += (moved - each.velocity) / 4;  // four periods, as one count a period is 100 counts a second
        if (each.velocity > 32767 * ONE) each.velocity = 32767 * ONE;
        if (each.velocity < -32767 * ONE) each.velocity = -32767 * ONE;
        each.before = each.counts;
        if (mode_ != Mode::ARMED || !each.used) continue;
        if (each.counts < SENSOR_LOW || each.counts > SENSOR_HIGH)
            stop(Reason::SENSOR_BROKEN, i);
        else if (each.counts + LIMIT_MARGIN < each.low || each.counts > each.high + LIMIT_MARGIN)
            stop(Reason::LIMIT, i);
    }
    ticked_ = now_;
    if (mode_ == Mode::ARMED || mode_ == Mode::STOPPED || mode_ == Mode::ARMING) {
        write_speeds(mode_ == Mode::ARMED);
    } else if (mode_ == Mode::RELEASING) {
        Packet packet(servo::BROADCAST, servo::WRITE);
        packet.add(servo::TORQUE_ENABLE).add(0).finish();
        wires_.to_servos(wires_.context, packet.data, packet.size);
    } else if (starting_stops_ > 0) {  // a restart of the board must not leave a servo turning
        starting_stops_--;
        Packet packet(servo::BROADCAST, servo::WRITE);
        packet.add(servo::MOVING_SPEED).add_word(0).finish();
        wires_.to_servos(wires_.context, packet.data, packet.size);
    }
}

void Board::write_speeds(bool moving) {
    Packet packet(servo::BROADCAST, servo::SYNC_WRITE);
    packet.add(servo::MOVING_SPEED).add(2);
    for (uint8_t i = 0; i < channels_; i++) {
        Channel& each = channel_[i];
        if (!each.used) continue;
        int16_t speed = moving ? each.loop.update(each.desired, each.counts, each.low, each.high, each.top) : 0;
        if (each.opposite) speed = static_cast<int16_t>(-speed);
        packet.add(each.id).add_word(servo::encode_speed(speed));
    }
    packet.finish();
    wires_.to_servos(wires_.context, packet.data, packet.size);
}

// -- questions to the servos ------------------------------------------------------------------------------------------

void Board::next_exchange(bool polls) {
    if (mode_ != Mode::ARMING && mode_ != Mode::RELEASING && !polls) return;
    for (uint8_t tried = 0; tried < channels_; tried++) {
        turn_ = static_cast<uint8_t>(turn_ + 1 < channels_ ? turn_ + 1 : 0);
        if (channel_[turn_].used && exchange_with(turn_)) return;
    }
    if (mode_ == Mode::ARMING) armed();
    if (mode_ == Mode::RELEASING) {
        mode_ = Mode::IDLE;
        for (uint8_t i = 0; i < channels_; i++) channel_[i].torque = false;
    }
}

bool Board::steps(const Channel& channel) const {
    return mode_ == Mode::ARMING || mode_ == Mode::RELEASING || channel.releasing;
}

// Asks a servo what its step needs; false where nothing is left to ask.
bool Board::exchange_with(uint8_t index) {
    Channel& each = channel_[index];
    if (steps(each) && each.step == Step::DONE) return false;
    if (!steps(each) || each.step == Step::LOOK || each.step == Step::CONFIRM) {
        Packet packet(each.id, servo::READ);
        packet.add(0).add(servo::TABLE_BYTES);
        ask(index, packet);
        return true;
    }
    Packet packet(each.id, servo::WRITE);
    switch (each.step) {
        case Step::WHEEL:  // return delay and both angle limits; EEPROM, written only where it differs
            packet.add(servo::RETURN_DELAY).add(0).add_word(0).add_word(0);
            break;
        case Step::REST: packet.add(servo::MOVING_SPEED).add_word(0).add_word(each.torque_limit); break;
        default: packet.add(servo::TORQUE_ENABLE).add(each.step == Step::TORQUE_ON ? 1 : 0); break;
    }
    ask(index, packet);
    return true;
}

void Board::ask(uint8_t channel, Packet& packet) {
    packet.finish();
    asking_ = channel;
    asked_ = now_;
    statuses_.begin();
    wires_.to_servos(wires_.context, packet.data, packet.size);
}

void Board::missed() {
    const uint8_t index = asking_;
    Channel& each = channel_[index];
    asking_ = NOWHERE;
    if (each.misses < 0xFF) each.misses++;
    if (each.misses < MAX_MISSES || mode_ == Mode::IDLE) return;
    stop(Reason::SERVO_SILENT, index);
}

void Board::answered() {
    const uint8_t index = asking_;
    Channel& each = channel_[index];
    const uint8_t count = statuses_.count();
    const bool asked_table = !steps(each) || each.step == Step::LOOK || each.step == Step::CONFIRM;
    if (count != 0 && count != servo::TABLE_BYTES) return;  // an answer to nothing that was asked
    asking_ = NOWHERE;
    each.misses = 0;
    each.errors = statuses_.error();
    if (count == servo::TABLE_BYTES) take_table(each, statuses_.parameters());
    if ((count != 0) != asked_table) return;  // the mode changed while the question was open: ask again
    if (steps(each)) {
        next_step(index);
    } else if (mode_ == Mode::ARMED && !each.torque) {
        stop(Reason::TORQUE_LOST, index);
    }
}

void Board::next_step(uint8_t index) {
    Channel& each = channel_[index];
    const uint8_t* table = statuses_.parameters();
    if (statuses_.error() & servo::INSTRUCTION_ERRORS) {
        if (mode_ == Mode::ARMING) stop(Reason::SERVO_REFUSES, index);
        return;  // torque off is asked again
    }
    const bool wheel = word_at(table + servo::CW_LIMIT) == 0 && word_at(table + servo::CCW_LIMIT) == 0;
    switch (each.step) {
        case Step::LOOK:
            if (each.model != servo::AX_12A) return stop(Reason::SERVO_MODEL, index);
            each.step = wheel && table[servo::RETURN_DELAY] == 0 ? Step::REST : Step::TORQUE_OFF;
            break;
        case Step::TORQUE_OFF:
            each.step = mode_ == Mode::ARMING ? Step::WHEEL : Step::DONE;
            each.releasing = each.torque = false;
            break;
        case Step::WHEEL: each.step = Step::REST; break;
        case Step::REST: each.step = Step::TORQUE_ON; break;
        case Step::TORQUE_ON: each.step = Step::CONFIRM; break;
        case Step::CONFIRM:
            if (!wheel || !each.torque || word_at(table + servo::TORQUE_LIMIT) != each.torque_limit)
                return stop(Reason::SERVO_REFUSES, index);
            each.step = Step::DONE;
            break;
        case Step::DONE: break;
    }
}

void Board::take_table(Channel& each, const uint8_t* table) {
    each.model = word_at(table + servo::MODEL_NUMBER);
    each.torque = table[servo::TORQUE_ENABLE] != 0;
    each.position = word_at(table + servo::PRESENT_POSITION);
    each.load = word_at(table + servo::PRESENT_LOAD);
    each.voltage = table[servo::PRESENT_VOLTAGE];
    each.temperature = table[servo::PRESENT_TEMPERATURE];
}

}  // namespace board
