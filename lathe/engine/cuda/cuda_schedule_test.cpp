#include "lathe/engine/cuda/cuda_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/engine/cuda/planned_launches.h"

// Plans need no GPU: in how many launches steps run is known before.
namespace lathe::engine {
namespace {

TEST(CudaSchedule, UpdatesAllParametersInOneLaunch) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[B,4]
    rate = input() : f32[]
    count = input() : f32[]
    random = input() : i32[3]
    w = state() : f32[4,4]
    b = state() : f32[4]
    mw = state() : f32[4,4]
    vw = state() : f32[4,4]
    mb = state() : f32[4]
    vb = state() : f32[4]
    h = linear(x, w, b)
    dw = linear_weight_gradient(h, x)
    db = sum_rows(h)
    sw = sum_squares(dw)
    sb = sum_squares(db)
    total = add(sw, sb)
    scale = gradient_scale(total, count) {max_norm=1.0}
    uw = adamw(w, dw, mw, vw, rate, scale, random)
    ub = adamw(b, db, mb, vb, rate, scale, random)
    output norm <- scale#1
    state w <- uw
    state mw <- uw#1
    state vw <- uw#2
    state b <- ub
    state mb <- ub#1
    state vb <- ub#2)");
  std::vector<std::vector<std::string>> launches;
  for (const CudaLaunch& launch : plan.launches) launches.push_back(ops_of(plan, launch));
  EXPECT_THAT(launches,
              testing::ElementsAre(testing::ElementsAre("linear"),
                                   testing::ElementsAre("linear_weight_gradient", "sum_rows"),
                                   testing::IsEmpty(),  // adds up the parts of both
                                   testing::ElementsAre("sum_squares", "sum_squares"),
                                   testing::ElementsAre("add", "gradient_scale"),
                                   testing::ElementsAre("adamw", "adamw")));
  EXPECT_EQ(plan.launches[2].group, CudaGroup::Sums);
  EXPECT_EQ(plan.launches[2].partials.size(), 2u);
  EXPECT_TRUE(plan.late_updates.empty()) << "every parameter and moment is updated in place";
}

TEST(CudaSchedule, TakesRowsThroughAllStepsThatFollowEachOther) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    r = input() : f32[T,8]
    g = state() : f32[8]
    b = state() : f32[8]
    s = sub(x, r)
    n = layer_norm(s, g, b)
    m = mul(n, r)
    output y <- m
    output n <- n)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("sub layer_norm mul"));
  EXPECT_FALSE(plan.slots[plan.slot({plan.graph.at("s"), 0})].is_stored) << "needs no memory";
  EXPECT_TRUE(plan.slots[plan.slot({plan.graph.at("n"), 0})].is_stored) << "is an output";
}

TEST(CudaSchedule, KeepsRowsOfDifferentWidthsApart) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    z = input() : f32[T,12]
    a = relu(x)
    b = relu(z)
    output a <- a
    output b <- b)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("relu", "relu"));
}

TEST(CudaSchedule, MakesAllProductsThatAreReadyAtOnce) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    q = state() : f32[8,8]
    k = state() : f32[8,8]
    v = state() : f32[4,8]
    a = linear(x, q)
    b = linear(x, k)
    c = linear(x, v)
    d = linear(a, k)
    output b <- b
    output c <- c
    output d <- d)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("linear linear linear", "linear"));
}

TEST(CudaSchedule, LetsAnActivationAndItsGradientFollowTheirProducts) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    dy = input() : f32[T,4]
    w = state() : f32[8,8]
    u = state() : f32[4,8]
    h = linear(x, w)
    y = gelu(h)
    dg = linear_input_gradient(dy, u)
    dh = map_gradient(dg, h) {function="gelu"}
    dw = linear_weight_gradient(dh, x)
    db = sum_rows(dh)
    output y <- y
    output dw <- dw
    output db <- db)");
  // The product of dy waits for h, which its follower reads.
  EXPECT_THAT(launches_of(plan),
              testing::ElementsAre("linear gelu linear_input_gradient", "map_gradient sum_rows",
                                   "linear_weight_gradient", ""));
}

TEST(CudaSchedule, RoundsAllWeightsInOneLaunchAndActivationsWhereTheyAreMade) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    w = state() : f32[8,8]
    u = state() : f32[8,8]
    m = state() : f32[8,8]
    g = state() : f32[8]
    b = state() : f32[8]
    n = layer_norm(x, g, b)
    a = quantize(n) {format="fixed:8,4"}
    p = quantize(w) {format="fixed:8,4"}
    q = quantize(u) {format="mxint:8"}
    h = linear(a, p)
    y = linear(a, q)
    v = add(m, m)
    output h <- h
    output y <- y
    state m <- v)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("layer_norm quantize", "quantize quantize",
                                                      "linear linear", "add"));
}

// Scales that are learned: the gradients of all weights' share a launch, those of activations are
// made with the rows that they belong to, and small arrays are worked on together.
TEST(CudaSchedule, DifferentiatesLearnedScalesInFewLaunches) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    dy = input() : f32[T,8]
    w = state() : f32[8,8]
    u = state() : f32[8,8]
    sw = state() : f32[8]
    su = state() : f32[8]
    sx = state() : f32[]
    half = constant() {values=[0.5]} : f32[]
    qx = quantize(x, sx) {format="int:4"}
    qw = quantize(w, sw) {format="int:4,channel"}
    qu = quantize(u, su) {format="int:4,channel"}
    dqw = linear_weight_gradient(dy, qx)
    dw = learned_step_gradient(dqw, w, qw, sw) {format="int:4,channel"}
    du = learned_step_gradient(dqw, u, qu, su) {format="int:4,channel"}
    dqx = linear_input_gradient(dy, qw)
    dx = learned_step_gradient(dqx, x, qx, sx) {format="int:4"}
    r = sub(dx, x)
    mw = mean(sw) {axes=[0]}
    mu = mean(su) {axes=[0]}
    lw = mul(sw, half)
    lu = mul(su, half)
    output r <- r
    output dsx <- dx#1
    output dw <- dw
    output du <- du
    output dsw <- dw#1
    output mw <- mw
    output mu <- mu
    output lw <- lw
    output lu <- lu)");
  EXPECT_THAT(launches_of(plan),
              testing::UnorderedElementsAre("quantize", "quantize quantize", "mean mean mul mul",
                                            "linear_weight_gradient linear_input_gradient",
                                            "learned_step_gradient sub", "",
                                            "learned_step_gradient learned_step_gradient"));
}

TEST(CudaSchedule, GatesTheGradientsOfAllWeightsInOneLaunch) {
  const CudaPlan plan = plan_of(R"(
    dw = state() : f32[8,8]
    db = state() : f32[6]
    w = state() : f32[8,8]
    b = state() : f32[6]
    gw = gate_gradient(dw, w) {minimum=-8.0,maximum=7.9375}
    gb = gate_gradient(db, b) {minimum=-8.0,maximum=7.9375}
    output gw <- gw
    output gb <- gb)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("gate_gradient gate_gradient"));
}

TEST(CudaSchedule, SortsIdsBesideTheForwardPass) {
  const CudaPlan plan = plan_of(R"(
    ids = input() : i32[T]
    offsets = input() : i32[S+1]
    dy = input() : f32[T,64]
    table = state() : f32[100,64]
    p = packed_positions(offsets) : i32[T]
    x = embedding(ids, table)
    y = relu(x)
    d = embedding_gradient(dy, ids) {rows=100}
    e = embedding_gradient(y, p) {rows=100}
    output d <- d
    output e <- e)");
  std::vector<int> begins;
  for (const CudaLaunch& launch : plan.launches)
    if (launch.group == CudaGroup::Tables) begins.push_back(launch.early);
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("packed_positions", "embedding relu",
                                                      "embedding_gradient embedding_gradient"));
  EXPECT_THAT(begins, testing::ElementsAre(1)) << "behind the positions, which are one's ids";
}

// Nobody waits for the gradients of weights but the update: over sequences, of which there are few,
// they do not hold up what others wait for.
TEST(CudaSchedule, LetsGradientsOverSequencesJoinALaunchOverTokens) {
  const CudaPlan plan = plan_of(R"(
    offsets = input() : i32[S+1]
    x = input() : f32[T,8]
    c = input() : f32[S,8]
    dy = input() : f32[S,8]
    w = state() : f32[8,8]
    u = state() : f32[8,8]
    dc = linear_input_gradient(dy, w)
    dw = linear_weight_gradient(dy, c)
    db = sum_rows(dy)
    r = tanh(dc)
    dx = select_in_sequence_gradient(r, offsets) : f32[T,8]
    dz = linear_input_gradient(dx, u)
    du = linear_weight_gradient(dx, x)
    output dz <- dz
    output dw <- dw
    output db <- db
    output du <- du)");
  EXPECT_THAT(launches_of(plan),
              testing::ElementsAre("linear_input_gradient", "tanh", "select_in_sequence_gradient",
                                   "linear_weight_gradient sum_rows linear_input_gradient "
                                   "linear_weight_gradient",
                                   ""));
}

TEST(CudaSchedule, SumsGradientsOfTablesAndALossBesideOtherLaunches) {
  const CudaPlan plan = plan_of(R"(
    ids = input() : i32[T]
    labels = input() : i32[S]
    offsets = input() : i32[S+1]
    y = input() : f32[S,8]
    dsum = input() : f32[]
    dx = input() : f32[T,64]
    w = state() : f32[8,8]
    loss = cross_entropy(y, labels)
    dy = cross_entropy_gradient(dsum, y, labels)
    dw = linear_weight_gradient(dy, y)
    dt = embedding_gradient(dx, ids) {rows=100}
    st = sum_squares(dt)
    sw = sum_squares(dw)
    total = add(st, sw)
    scale = gradient_scale(total, loss#1) {max_norm=1.0}
    output loss <- loss
    output scale <- scale)");
  std::vector<std::string> beside;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const CudaLaunch& launch = plan.launches[i];
    if (launch.joined < 0) continue;
    const auto reader = static_cast<std::size_t>(launch.joined);
    beside.push_back(fmt::format("{} until {}", fmt::join(ops_of(plan, launch), " "),
                                 fmt::join(ops_of(plan, plan.launches[reader]), " ")));
    for (const std::size_t step : launch.steps)
      for (const int slot : plan.steps[step].inputs)
        EXPECT_GE(plan.slots[static_cast<std::size_t>(slot)].last, launch.joined - 1)
            << "memory that it reads is not given out meanwhile";
  }
  EXPECT_THAT(beside,
              testing::UnorderedElementsAre("cross_entropy until add gradient_scale",
                                            "embedding_gradient until sum_squares sum_squares"));
}

}  // namespace
}  // namespace lathe::engine
