#pragma once

#include <cstddef>
#include <vector>

/// The best product of two narrow matrices in place of one (Eckart and Young 1936).
namespace lathe::compress {

/// What says how much an error in a matrix M [rows, columns] counts; empty: all errors alike.
struct ErrorWeights {
  /// By row: |e_i|^2 counts row_weights[i] times, as often as row i of a table is looked up.
  std::vector<double> rows = {};
  /// C [columns, columns], the mean of x x^T: an error counts by what it does to M x.
  std::vector<double> products = {};
};

/// A matrix [rows, columns] seen by how much of it each direction holds.
class Factorization {
 public:
  Factorization(std::vector<double> matrix, std::size_t rows, std::size_t columns,
                const ErrorWeights& weights = {});

  /// The weighted squares that ranks 1, 2, ... add, in falling order: the squared singular values
  /// where errors count alike. What a rank leaves out is the sum of those behind it.
  const std::vector<double>& energies() const { return energies_; }
  /// The least rank that holds this share of all energy.
  std::size_t rank_of_energy(double share) const;

  struct Factors {
    std::vector<double> left;   ///< [rows, rank]
    std::vector<double> right;  ///< [rank, columns]
  };
  /// The factors of the product that has the least weighted error of all of this rank. Columns of
  /// the one and rows of the other are as long as each other, so that both are rounded alike.
  Factors factors(std::size_t rank) const;

 private:
  std::size_t rows_, columns_;
  std::vector<double> matrix_;
  /// Orthonormal directions, one a row: of the columns' space where `is_right_`, else the rows'.
  std::vector<double> basis_;
  bool is_right_ = false;
  std::vector<double> energies_;
};

}  // namespace lathe::compress
