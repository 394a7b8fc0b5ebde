// What a trial of any point would report, learned from recorded ones: a Gaussian process over the
// sizes and over which share of each kind of projection is left out. A single record's luck moves
// it little, so that samplers are compared by where they look and not by what they hit.
#pragma once

#include <cmath>
#include <map>
#include <numeric>

#include "bench/recorded_trials.h"

namespace lathe::bench {

class TrialSurrogate {
 public:
  explicit TrialSurrogate(const std::vector<RecordedTrial>& trials) {
    for (const RecordedTrial& each : trials) features_.push_back(features_of(each.point));
    for (std::size_t rung = 0; rung < kRungs.size(); ++rung) {
      std::vector<double> values;
      for (const RecordedTrial& each : trials) values.push_back(each.reports[rung]);
      Process best;
      for (const double size_length : {0.5, 1.0, 2.0})
        for (const double share_length : {0.5, 1.0, 2.0, 4.0})
          for (const double noise : {0.03, 0.1, 0.3, 1.0}) {
            Process process = fit(values, {size_length, share_length, noise});
            if (process.weights.empty()) continue;
            if (best.weights.empty() || process.error < best.error) best = std::move(process);
          }
      check(!best.weights.empty(), "a surrogate");
      processes_.push_back(std::move(best));
    }
  }

  std::array<double, kRungs.size()> reports(const study::Assignment& point) const {
    const Features features = features_of(point);
    std::array<double, kRungs.size()> result = {};
    for (std::size_t rung = 0; rung < result.size(); ++rung) {
      const Process& process = processes_[rung];
      result[rung] = process.mean;
      for (std::size_t i = 0; i < features_.size(); ++i)
        result[rung] += process.weights[i] * kernel(features, features_[i], process.lengths);
    }
    return result;
  }

  /// How well records are foretold at a rung by all others: the rank correlation.
  double rank_correlation(const std::vector<RecordedTrial>& trials, std::size_t rung) const {
    std::vector<double> values;
    for (const RecordedTrial& each : trials) values.push_back(each.reports[rung]);
    const std::vector<double> a = ranks(values), b = ranks(processes_[rung].left_out);
    double product = 0, square_a = 0, square_b = 0;
    const double middle = static_cast<double>(values.size() - 1) / 2;
    for (std::size_t i = 0; i < a.size(); ++i) {
      product += (a[i] - middle) * (b[i] - middle);
      square_a += (a[i] - middle) * (a[i] - middle);
      square_b += (b[i] - middle) * (b[i] - middle);
    }
    return product / std::sqrt(square_a * square_b);
  }

 private:
  struct Features {
    std::vector<double> sizes;             // the place in its list, from 0 to 1
    std::map<std::string, double> shares;  // of each kind's choices of two, how many are the second
  };
  struct Lengths {
    double sizes = 1, shares = 1, noise = 0.1;
  };
  struct Process {
    Lengths lengths;
    double mean = 0, error = 0;
    std::vector<double> weights = {}, left_out = {};
  };

  static Features features_of(const study::Assignment& point) {
    Features result;
    std::map<std::string, double> counts;
    for (const study::Parameter& each : point) {
      const auto& choices = std::get<study::CategoricalDistribution>(*each.distribution).choices;
      const auto last = static_cast<double>(choices.size()) - 1;
      if (last > 1) {
        result.sizes.push_back(each.value / last);
        continue;
      }
      const std::string kind = each.name.substr(each.name.find_last_of("./ ") + 1);
      ++counts[kind];
      result.shares[kind] += each.value;
    }
    for (auto& [kind, share] : result.shares) share /= counts[kind];
    return result;
  }

  static double kernel(const Features& a, const Features& b, const Lengths& lengths) {
    double sizes = 0, shares = 0;
    for (std::size_t i = 0; i < a.sizes.size(); ++i)
      sizes += (a.sizes[i] - b.sizes[i]) * (a.sizes[i] - b.sizes[i]);
    for (const auto& [kind, share] : a.shares) {
      const auto found = b.shares.find(kind);
      const double other = found == b.shares.end() ? 0 : found->second;
      shares += (share - other) * (share - other);
    }
    return std::exp(-sizes / (lengths.sizes * lengths.sizes) -
                    shares / (lengths.shares * lengths.shares));
  }

  static std::vector<double> ranks(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
    std::vector<double> result(values.size());
    for (std::size_t i = 0; i < order.size(); ++i) result[order[i]] = static_cast<double>(i);
    return result;
  }

  // By the inverse of the covariance, which also has what each record is foretold as by the others.
  Process fit(const std::vector<double>& values, Lengths lengths) const {
    const std::size_t n = values.size();
    std::vector<double> matrix(n * n), inverse(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k)
        matrix[i * n + k] = kernel(features_[i], features_[k], lengths);
      matrix[i * n + i] += lengths.noise;
    }
    // Cholesky in place, then the inverse of the triangle.
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k <= i; ++k) {
        double sum = matrix[i * n + k];
        for (std::size_t j = 0; j < k; ++j) sum -= matrix[i * n + j] * matrix[k * n + j];
        if (i == k && sum <= 0) return {};
        matrix[i * n + k] = i == k ? std::sqrt(sum) : sum / matrix[k * n + k];
      }
    for (std::size_t column = 0; column < n; ++column)
      for (std::size_t i = column; i < n; ++i) {
        double sum = i == column ? 1 : 0;
        for (std::size_t j = column; j < i; ++j) sum -= matrix[i * n + j] * inverse[j * n + column];
        inverse[i * n + column] = sum / matrix[i * n + i];
      }
    Process result{.lengths = lengths};
    result.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(n);
    std::vector<double> half(n, 0.0), diagonal(n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k <= i; ++k)
        half[i] += inverse[i * n + k] * (values[k] - result.mean);
    result.weights.assign(n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k <= i; ++k) {
        result.weights[k] += inverse[i * n + k] * half[i];
        diagonal[k] += inverse[i * n + k] * inverse[i * n + k];
      }
    for (std::size_t i = 0; i < n; ++i) {
      const double miss = result.weights[i] / diagonal[i];
      result.left_out.push_back(values[i] - miss);
      result.error += miss * miss;
    }
    return result;
  }

  std::vector<Features> features_;
  std::vector<Process> processes_;
};

}  // namespace lathe::bench
