#pragma once

#include <string>
#include <string_view>

#include "lathe/core/graph.h"

namespace lathe {

/// The text form of a graph, version 2. Parsing what was printed gives the same graph.
///
///     lathe-ir 2
///     symbols B
///     x = input() : f32[B,4]
///     w = state() : f32[8,4]
///     h = linear(x, w, none) : f32[B,8]
///     y = leaky_relu(h) {slope=0.1} : f32[B,8]
///     output y <- y
///
/// `state w <- w1` binds the value a state takes after a step; `s#1` is the second result of s;
/// a `#` after a blank starts a comment. Names with unusual characters stand in quotes.
std::string print(const Graph& graph);
/// One node's line.
std::string print(const Graph& graph, NodeId id);
std::string print(const Graph& graph, std::string_view node_name);

/// Reads a graph; fails with the line number. The first line may be left out, symbols then need no
/// declaration, result types may be left to the shape rules, and roles of states to their readers.
/// Version 1, which had no roles, is read like that too.
Graph parse_graph(std::string_view text);

/// Reads a type such as `f32[T,128]`; fails on anything else.
Type parse_type(std::string_view text);
/// Reads `{a=1, b="x"}` or the part between the braces.
Attributes parse_attributes(std::string_view text);

}  // namespace lathe
