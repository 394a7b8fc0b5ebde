// For a way to multiply whole numbers that wants windows gathered into rows.

constexpr void (*kMultiplyWindows)(const CodeWindowArgs&) = nullptr;
constexpr void (*kSumPixels)(const std::int8_t*, std::int64_t, std::int64_t,
                             std::int32_t*) = nullptr;
