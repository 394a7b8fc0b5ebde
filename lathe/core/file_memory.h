#pragma once

#include <cstddef>
#include <span>

namespace lathe {

/// Memory in which a file is mapped to be read: its pages can be let go of, and are read from the
/// file again when somebody touches them. Whoever maps a file says so here, and again before it is
/// unmapped.
void add_file_memory(std::span<const std::byte> bytes);
void remove_file_memory(std::span<const std::byte> bytes);

/// Whether these bytes are in a file.
bool is_file_memory(std::span<const std::byte> bytes);

/// Gives the system back the pages that these bytes fill, if they are in a file; any other memory
/// stays as it is. The bytes can be read afterwards as before.
void let_go(std::span<const std::byte> bytes);

}  // namespace lathe
