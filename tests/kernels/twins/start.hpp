#pragma once

#include <cstdint>

void print(const char* text);
void print(std::uint32_t number);
