#pragma once

// The arguments of the kernels that only training needs. Plain structs only: see kernel_table.h.

#include <cstdint>

namespace lathe::engine {

/// Which elements a dropout zeroes: those whose 16 random bits are below `threshold`. The others
/// are scaled by 65536 / (65536 - threshold). The bits are Philox's, keyed by the seed; the counter
/// holds the site, the step, the example and where in it the element is, and nothing of the batch.
struct Dropout {
  std::uint32_t threshold = 0;  ///< 0 drops nothing, 65536 everything
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t site = 0;  ///< below 65536
};

/// The gradient of a score (before a softmax) whose magnitude is below this is 0. In a saturated
/// row nearly all are far smaller than anything they are added to; kept, they and their products
/// would be subnormal numbers, in volume. ops/underflow.h has the same for the definitions.
inline constexpr float kLeastScoreGradient = 0x1p-100f;

/// Rounds the weights of one query of attention in place, before they multiply the values. A plain
/// function, so that number formats need not be compiled for every instruction set.
struct WeightRounding {
  /// `keep` as in AttentionArgs, for the first `count` keys, which are those the query may see.
  void (*round)(const void* context, float* weights, const std::uint8_t* keep,
                std::int64_t count) = nullptr;  ///< null rounds nothing
  const void* context = nullptr;
};

/// y = dropout(x) + residual. Eight features of a row share the counter
/// {site << 16 | feature / 8, position, example, step}; feature 8 b + 2 w + h takes bits
/// 16 h .. 16 h + 15 of word w. A dropped element is 0 whatever it was.
struct DropoutRowsArgs {
  std::int64_t rows, n;
  const float* x;
  std::int64_t x_stride;
  const float* residual;  ///< or null; may be y itself
  std::int64_t residual_stride;
  float* y;  ///< may be x
  std::int64_t y_stride;
  Dropout dropout;
  const std::int32_t* positions;  ///< one for each row
  const std::int32_t* examples;   ///< one for each row
};

/// dw[n, k] = dy[rows, n]^T . x[rows, k].
///
/// Each element is summed over the rows in ascending order, so rows given in several calls with
/// `accumulate` have the bits of one call.
struct WeightGradientArgs {
  std::int64_t rows, n, k;
  const float* dy;
  std::int64_t dy_stride;
  const float* x;
  std::int64_t x_stride;
  float* dw;
  std::int64_t dw_stride;
  bool accumulate;  ///< start the sums from dw instead of 0
};

/// The gradients of y = layer_norm(x) or rms_norm(x) from dy; mean and variance are computed from
/// x again.
struct NormBackwardArgs {
  std::int64_t rows, n;
  const float* dy;
  std::int64_t dy_stride;
  const float* x;
  std::int64_t x_stride;
  const float* gamma;  ///< or null for 1
  float eps;
  const float* dx_add;  ///< added to dx, or null; may be dx itself
  std::int64_t dx_add_stride;
  float* dx;  ///< may be dy or x
  std::int64_t dx_stride;
  float* dgamma;  ///< n sums that the rows are added to in ascending order, or null
  float* dbeta;   ///< likewise; null of rms_norm, which has none
};

/// The gradient of y = softmax(x), dx = y (dy - sum(dy y)) with what is below kLeastScoreGradient
/// 0, or of y = log_softmax(x), dx = dy - exp(y) sum(dy), along rows.
struct SoftmaxBackwardArgs {
  std::int64_t rows, n;
  const float* dy;
  std::int64_t dy_stride;
  const float* y;
  std::int64_t y_stride;
  float* dx;  ///< may be dy or y
  std::int64_t dx_stride;
};

/// The gradients of `attention` for one sequence and one head, whose weights are computed again.
///
/// A query that sees no kept key weighs all keys equally whatever the scores are: it contributes
/// to dv and not to dq and dk. Rounded weights make dv; dq and dk are those of weights that are not
/// rounded.
struct AttentionBackwardArgs {
  std::int64_t lq, lk, d;
  const float* q;
  const float* k;
  const float* v;
  const float* dout;
  std::int64_t q_stride, k_stride, v_stride, dout_stride;
  float* dq;
  float* dk;
  float* dv;
  std::int64_t dq_stride, dk_stride, dv_stride;
  bool accumulate;  ///< add to dk and dv, which several query heads may share, not to dq
  float scale;
  bool causal;
  const std::uint8_t* keep;  ///< lk entries, or null to keep all
  Dropout dropout = {};
  std::uint32_t head = 0, example = 0;
  WeightRounding rounding = {};
  float* scratch;  ///< attention_backward_scratch_size(lq, lk, d) floats
};

/// A softmax cross-entropy over rows of logits. A row whose label is `ignore_index` does not count;
/// the other labels are not checked here: whoever reads them from a user does.
struct CrossEntropyArgs {
  std::int64_t rows, classes;
  const float* logits;
  std::int64_t logits_stride;
  const std::int32_t* labels;
  std::int64_t ignore_index;
  double* sum;          ///< the losses are added to it in ascending order
  std::int64_t* count;  ///< and the number of rows that count to this
};

/// dlogits = (softmax(logits) - one_hot(label)) dsum, and 0 in rows that do not count.
struct CrossEntropyBackwardArgs {
  std::int64_t rows, classes;
  const float* logits;
  std::int64_t logits_stride;
  const std::int32_t* labels;
  std::int64_t ignore_index;
  float dsum;
  float* dlogits;  ///< may be logits
  std::int64_t dlogits_stride;
};

/// One step of AdamW in place over a range of a parameter, with g = gradient scale:
///   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
///   param = decay param - step_size m / (root_correction sqrt(v) + eps).
/// A moment below the smallest normal float is 0: decay by rounding would never get there.
/// Nothing changes when `scale` is NaN.
struct AdamwArgs {
  std::int64_t count;
  float* param;
  const float* gradient;  ///< null for zeros
  float* m;
  float* v;
  float scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float decay;            ///< 1 - learning rate * weight decay
  float step_size;        ///< learning rate / (1 - beta1^step)
  float root_correction;  ///< 1 / sqrt(1 - beta2^step)
  float eps;
};

/// One step of SGD in place over a range of a parameter, with g = gradient scale + weight_decay
/// param: velocity = momentum velocity + g, param = param - learning_rate velocity.
/// A velocity below the smallest normal float is 0.
/// Nothing changes when `scale` is NaN.
struct SgdArgs {
  std::int64_t count;
  float* param;
  const float* gradient;  ///< null for zeros
  float* velocity;        ///< null when there is no momentum
  float scale;
  float learning_rate, momentum, weight_decay;
};

/// Elements that one scale s of a quantizer y = quantize(x) covers. Inside the range
/// minimum <= x/s + zero <= maximum, dx = dy and s receives dy (y - x)/s; outside dx = 0 and s
/// receives dy y/s. dx may be dy.
struct LearnedStepArgs {
  std::int64_t count;
  const float* dy;
  const float* x;
  const float* y;
  float scale, zero;
  float minimum, maximum;
  float* dx;
};

}  // namespace lathe::engine
