#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// How to spend a budget over many items: which format, sparsity or rank each layer gets so that a
/// model fits a size and loses least. Knows nothing of models.
namespace lathe::compress {

/// One thing that may be done with an item.
struct BudgetOption {
  std::int64_t cost = 0;  ///< 0 or more, in any unit: bytes, bits, operations
  double damage = 0;      ///< finite, such as an estimated increase of the loss; may be negative
};

/// What may be done with an item; one of them is.
using BudgetItem = std::vector<BudgetOption>;

/// A decision for every item, and what it comes to.
struct BudgetChoice {
  std::vector<std::size_t> options;  ///< for each item, the index of its option
  std::int64_t cost = 0;
  double damage = 0;  ///< added in the order of the items
};

/// The choice of the least damage that costs at most `budget`, and of those that do as little the
/// cheapest; nullopt when even the cheapest choice of all costs more.
///
/// It is the least of all, not an approximation (a multiple-choice knapsack problem): damages are
/// compared as multiples of 2^-60 of the sum of each item's largest, costs exactly. The same items
/// give the same choice. The time is that of sorting the options unless items are made to be hard.
std::optional<BudgetChoice> least_damage(std::span<const BudgetItem> items, std::int64_t budget);

/// The cheapest choice that does at most `damage`, and of those as cheap the one of least damage;
/// nullopt when every choice does more.
std::optional<BudgetChoice> least_cost(std::span<const BudgetItem> items, double damage);

/// The cheapest choice whatever it does, by the least damage where costs are equal: what a budget
/// must cover.
BudgetChoice cheapest(std::span<const BudgetItem> items);

}  // namespace lathe::compress
