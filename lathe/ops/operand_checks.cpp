#include "lathe/ops/operand_checks.h"

namespace lathe::ops {

void require_floating(std::string_view op, const OpCall& call, std::size_t index) {
  const Type& type = call.input(index);
  if (!is_floating(type.dtype))
    fail("{} works on floating-point numbers, not {}", op, to_text(type));
}

void require_integer(std::string_view op, std::string_view operand, const Type& type) {
  if (is_floating(type.dtype)) fail("{} needs integer {}, not {}", op, operand, to_text(type));
}

void require_rank(std::string_view op, std::string_view operand, const Type& type,
                  std::size_t rank) {
  if (type.rank() != rank) fail("{} needs {} of rank {}, not {}", op, operand, rank, to_text(type));
}

void require_rank_at_least(std::string_view op, std::string_view operand, const Type& type,
                           std::size_t rank) {
  if (type.rank() < rank)
    fail("{} needs {} of rank {} or more, not {}", op, operand, rank, to_text(type));
}

void require_vector(std::string_view op, std::string_view operand, const Type& type,
                    const Size& size) {
  if (type.rank() != 1 || type.shape[0] != size)
    fail("{} needs {} of shape [{}], not {}", op, operand, size.text(), to_text(type));
}

void require_same_dtype(std::string_view op, const Type& a, const Type& b) {
  if (a.dtype != b.dtype)
    fail("cannot {} {} and {}: dtypes {} and {} differ", op, to_text(a), to_text(b), name(a.dtype),
         name(b.dtype));
}

std::int64_t constant_size(std::string_view op, const Size& size, const Type& of) {
  if (!size.is_constant())
    fail("{} needs a constant in place of size {} of {}", op, size.text(), to_text(of));
  return size.constant();
}

const Type& declared_type(std::string_view op, const OpCall& call) {
  if (call.declared().size() != 1)
    fail("{} needs its result type written, such as \": f32[B,128]\"", op);
  return call.declared()[0];
}

}  // namespace lathe::ops
