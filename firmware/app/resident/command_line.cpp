#include "app/resident/command_line.hpp"

#include <cstring>

namespace ethosu_sdk::app {
namespace {

bool is_blank(char character) {
  return character == ' ' || character == '\t';
}

// The next word, ended by NUL in place, with `text` moved behind it; nullptr at the end.
char* take_word(char*& text) {
  while (is_blank(*text)) {
    ++text;
  }
  if (*text == '\0') {
    return nullptr;
  }
  char* const word = text;
  while (*text != '\0' && !is_blank(*text)) {
    ++text;
  }
  if (*text != '\0') {
    *text++ = '\0';
  }
  return word;
}

bool refuse(Failure& failure, const char* reason, const char* word) {
  return failure.say("program", "bad_command_line", reason, word,
                     ": executor_runner -m FILE [-i FILE]... [-o NAME]");
}

bool take_option(const char* option, const char* value, CommandLine& line, Failure& failure) {
  if (std::strcmp(option, "-i") == 0) {
    if (line.input_count == CommandLine::max_inputs) {
      return refuse(failure, "too many inputs, at ", value);
    }
    line.inputs[line.input_count++] = value;
    return true;
  }
  const char*& place = std::strcmp(option, "-m") == 0 ? line.model : line.output;
  if (place != nullptr) {
    return refuse(failure, "given twice: ", option);
  }
  place = value;
  return true;
}

}  // namespace

std::uint32_t count_words(const char* text) {
  std::uint32_t words = 0;
  for (bool inside = false; *text != '\0'; ++text) {
    words += !inside && !is_blank(*text) ? 1 : 0;
    inside = !is_blank(*text);
  }
  return words;
}

bool parse_command_line(char* text, CommandLine& line, Failure& failure) {
  take_word(text);
  while (const char* const option = take_word(text)) {
    if (std::strcmp(option, "-m") != 0 && std::strcmp(option, "-i") != 0 && std::strcmp(option, "-o") != 0) {
      return refuse(failure, "unknown option ", option);
    }
    const char* const value = take_word(text);
    if (value == nullptr) {
      return refuse(failure, "nothing behind ", option);
    }
    if (!take_option(option, value, line, failure)) {
      return false;
    }
  }
  return line.model != nullptr || refuse(failure, "no program", "");
}

}  // namespace ethosu_sdk::app
