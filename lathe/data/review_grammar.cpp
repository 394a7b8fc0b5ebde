#include "lathe/data/review_grammar.h"

#include "lathe/core/error.h"

namespace lathe::data::review_grammar {
namespace {

using Word = std::string_view;

constexpr Word kPositive[] = {
    "wonderful", "brilliant", "superb",      "excellent", "charming",   "gripping",  "moving",
    "funny",     "clever",    "great",       "good",      "delightful", "beautiful", "fresh",
    "witty",     "tender",    "stunning",    "enjoyable", "memorable",  "thrilling", "touching",
    "lovely",    "sharp",     "graceful",    "inspired",  "warm",       "exciting",  "honest",
    "rich",      "vivid",     "fascinating", "splendid"};
constexpr Word kNegative[] = {
    "awful",    "terrible", "boring",     "dull",    "bad",    "weak",        "clumsy",
    "lifeless", "horrible", "tedious",    "flat",    "silly",  "predictable", "annoying",
    "ugly",     "stale",    "shallow",    "messy",   "lazy",   "painful",     "bland",
    "dreary",   "hollow",   "forced",     "tired",   "wooden", "sloppy",      "pointless",
    "dreadful", "empty",    "ridiculous", "pathetic"};
constexpr Word kAspects[] = {"acting", "story",   "plot",    "script",    "dialogue", "music",
                             "score",  "ending",  "pacing",  "direction", "cast",     "photography",
                             "humor",  "romance", "editing", "opening",   "villain",  "hero"};
constexpr Word kFilms[] = {"film", "movie", "picture", "drama", "comedy", "thriller"};
constexpr Word kVery[] = {"", "", "", "very", "truly", "really", "quite", "simply", "rather"};
constexpr Word kNot[] = {"not", "never", "hardly", "not", "never"};
constexpr Word kPeople[] = {"friend", "sister", "brother", "neighbor", "cousin",
                            "mother", "father", "boss",    "teacher",  "uncle"};
constexpr Word kSaid[] = {"said", "thought", "claimed", "insisted", "promised", "wrote"};
constexpr Word kDays[] = {"monday", "tuesday",  "wednesday", "thursday",
                          "friday", "saturday", "sunday"};
constexpr Word kPlaces[] = {"cinema", "house", "theater", "airport", "hotel", "library", "train"};
constexpr Word kNumbers[] = {"two", "three", "four", "five", "six", "seven"};

constexpr Template kPlainOpinions[] = {
    "the <aspect> was <very> <own> .", "i found the <aspect> <very> <own> .",
    "for me this is a <own> <film> .", "i think the <aspect> is <own> and the <aspect> is <own> .",
    "what a <own> <film> this is .",
};
constexpr Template kNegatedOpinions[] = {
    "the <aspect> was <not> <other> .",         "the <aspect> is <not> <very> <other> .",
    "i did not find the <aspect> <other> .",    "for me this is not a <other> <film> .",
    "nothing about the <aspect> was <other> .",
};
constexpr Template kContrasts[] = {
    "the <aspect> was <very> <other> but the <aspect> was <very> <own> .",
    "although the <aspect> was <other> , the <aspect> was <own> .",
    "although i found the <aspect> <very> <other> , i think the <aspect> is <own> .",
    "the <aspect> may be <other> , but in the end this is a <own> <film> .",
    "the <aspect> was <own> , but that is only the <aspect> , and the <film> is <not> <other> .",
};
constexpr Template kDistractions[] = {
    "my <person> <said> it was <any> .",
    "my <person> <said> that the <aspect> was <very> <any> .",
    "the trailer looked <very> <any> .",
    "the book was <any> , as my <person> <said> .",
    "another <film> by the same studio was <any> .",
    "the critics called it <any> and <any> .",
};
constexpr Template kFillers[] = {
    "i saw it on <day> with my <person> .",
    "we watched it at the <place> on a <day> in <number> sittings .",
    "it runs for almost <number> hours .",
    "the <film> is set in a small town near the sea .",
    "it follows <number> people who meet at a <place> .",
    "a <person> comes home after <number> years and opens a <place> .",
    "there were <number> other people in the <place> .",
    "the <film> was shot in <number> weeks .",
    "we talked about the <aspect> on the way home .",
    "on <day> i read about the <aspect> in the paper .",
};

struct Slot {
  Word name;
  std::span<const Word> words;
};
constexpr Slot kSlots[] = {
    {"<aspect>", kAspects}, {"<film>", kFilms},    {"<very>", kVery},
    {"<not>", kNot},        {"<person>", kPeople}, {"<said>", kSaid},
    {"<day>", kDays},       {"<place>", kPlaces},  {"<number>", kNumbers},
};
constexpr Word kSlotNames[] = {"<aspect>", "<film>", "<very>",  "<not>",   "<person>",
                               "<said>",   "<day>",  "<place>", "<number>"};

}  // namespace

std::span<const Template> plain_opinions() {
  return kPlainOpinions;
}
std::span<const Template> negated_opinions() {
  return kNegatedOpinions;
}
std::span<const Template> contrasts() {
  return kContrasts;
}
std::span<const Template> distractions() {
  return kDistractions;
}
std::span<const Template> fillers() {
  return kFillers;
}
std::span<const Word> slots() {
  return kSlotNames;
}
std::span<const Word> positive_adjectives() {
  return kPositive;
}
std::span<const Word> negative_adjectives() {
  return kNegative;
}

std::span<const Word> slot_words(Word name) {
  for (const Slot& slot : kSlots)
    if (slot.name == name) return slot.words;
  check(false, "a review template to use only known slots");
  return {};
}

}  // namespace lathe::data::review_grammar
