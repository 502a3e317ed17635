// The firmware's half of the firmware-host protocol: the names of all records and their fields.
// Declared for the host in sdk/ethosu_sdk/evidence/protocol.py; a contract test compares the two both ways.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::app::protocol {

constexpr std::uint32_t version = 5;
constexpr char record_prefix[] = "~ethosu";
constexpr std::size_t data_chunk_bytes = 768;

constexpr std::uint32_t input_image_magic = 0x31495545;
constexpr std::uint32_t input_image_version = 4;
constexpr std::size_t input_image_header_bytes = 1216;
constexpr std::size_t input_image_alignment = 16;
constexpr std::size_t input_image_max_events = 8;
constexpr std::size_t input_image_max_event_groups = 32;
constexpr std::size_t input_image_event_groups_at = 64;
constexpr std::size_t input_image_nonce_at = 32;
constexpr std::size_t input_image_nonce_bytes = 16;
constexpr std::size_t input_image_options_at = 48;
constexpr std::uint32_t input_image_counts_cycles = 1;
constexpr std::uint32_t input_image_resets_state = 2;
constexpr std::size_t input_image_pieces_at = 52;

constexpr std::uint32_t program_header_magic = 0x31505545;
constexpr std::uint32_t program_header_version = 1;

constexpr char status_ok[] = "ok";
constexpr char status_error[] = "error";

enum class Kind : std::uint8_t { number, text, list };

struct Field {
  const char* name;
  Kind kind;
};

template <std::size_t N>
struct Record {
  const char* name;
  Field fields[N];  // in the order in which they are written
};

constexpr Record<5> boot{"boot",
                         {{"protocol", Kind::number},
                          {"firmware", Kind::text},
                          {"board", Kind::text},
                          {"model_bytes", Kind::number},
                          {"model_sha256", Kind::text}}};

constexpr Record<2> npu{"npu", {{"id", Kind::number}, {"config", Kind::number}}};

constexpr Record<4> method{
    "method",
    {{"name", Kind::text}, {"inputs", Kind::number}, {"outputs", Kind::number}, {"delegates", Kind::number}}};

constexpr Record<3> memory{
    "memory", {{"name", Kind::text}, {"used_bytes", Kind::number}, {"size_bytes", Kind::number}}};

constexpr Record<4> input{
    "input",
    {{"inference", Kind::number}, {"index", Kind::number}, {"bytes", Kind::number}, {"crc32", Kind::text}}};

constexpr Record<4> instruction{
    "operator",
    {{"inference", Kind::number}, {"instruction", Kind::number}, {"kind", Kind::text}, {"name", Kind::text}}};

constexpr Record<3> cpu{
    "cpu", {{"inference", Kind::number}, {"instruction", Kind::number}, {"cycles", Kind::number}}};

constexpr Record<5> pmu{"pmu",
                        {{"inference", Kind::number},
                         {"instruction", Kind::number},
                         {"cycles", Kind::number},
                         {"overflow", Kind::number},
                         {"counters", Kind::list}}};

constexpr Record<2> inference{"inference", {{"inference", Kind::number}, {"delegate_calls", Kind::number}}};

constexpr Record<6> output{"output",
                           {{"inference", Kind::number},
                            {"index", Kind::number},
                            {"dtype", Kind::text},
                            {"shape", Kind::list},
                            {"bytes", Kind::number},
                            {"crc32", Kind::text}}};

constexpr Record<4> data{
    "data",
    {{"inference", Kind::number}, {"index", Kind::number}, {"offset", Kind::number}, {"base64", Kind::text}}};

constexpr Record<3> error{"error", {{"stage", Kind::text}, {"code", Kind::text}, {"detail", Kind::text}}};

constexpr Record<8> fault{"fault",
                          {{"cause", Kind::text},
                           {"pc", Kind::number},
                           {"lr", Kind::number},
                           {"sp", Kind::number},
                           {"xpsr", Kind::number},
                           {"cfsr", Kind::number},
                           {"hfsr", Kind::number},
                           {"address", Kind::number}}};

constexpr Record<4> end{
    "end",
    {{"status", Kind::text}, {"inferences", Kind::number}, {"records", Kind::number}, {"seal", Kind::text}}};

}  // namespace ethosu_sdk::app::protocol
