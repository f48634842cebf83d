// The Arduino IDE takes a folder by the file of its name; everything is in the files beside it, main() in
// board_avr.cpp. Board: Arduino Mega or Mega 2560.
