// A stub of a device's startup code.
#include <cstdint>
extern "C" std::uint32_t __StackTop;
extern "C" int main();
extern "C" void Reset_Handler() {
  main();
}
extern "C" __attribute__((section(".vectors"), used)) const void* const vectors[] = {
    &__StackTop, reinterpret_cast<const void*>(&Reset_Handler)};
