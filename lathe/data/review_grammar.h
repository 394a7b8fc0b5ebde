#pragma once

#include <span>
#include <string_view>

namespace lathe::data::review_grammar {

/// A sentence with slots: a word in angle brackets is replaced by a word of that list. <own> is an
/// adjective of the reviewer's opinion, <other> one of the opposite opinion, <any> one of either.
using Template = std::string_view;

/// The reviewer's judgement, said straight.
std::span<const Template> plain_opinions();
/// The reviewer's judgement, said as the negation of its opposite.
std::span<const Template> negated_opinions();
/// Two judgements of which the later one counts.
std::span<const Template> contrasts();
/// Judgements that are not the reviewer's or not about this film.
std::span<const Template> distractions();
/// No judgement.
std::span<const Template> fillers();

/// The words of a slot such as "<aspect>"; an empty word means that nothing is written.
std::span<const std::string_view> slot_words(std::string_view slot);
/// The slots that slot_words knows.
std::span<const std::string_view> slots();
std::span<const std::string_view> positive_adjectives();
std::span<const std::string_view> negative_adjectives();

}  // namespace lathe::data::review_grammar
