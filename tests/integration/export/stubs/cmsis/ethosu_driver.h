// A stub of the header of Arm's Ethos-U core driver.
#pragma once
#include <cstddef>
struct ethosu_driver {
  int registered;
};
extern "C" {
int ethosu_init(struct ethosu_driver* driver, void* base, const void* fast, std::size_t fast_bytes, unsigned secure,
                unsigned privileged);
void ethosu_irq_handler(struct ethosu_driver* driver);
}
