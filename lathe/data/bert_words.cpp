#include "lathe/data/bert_words.h"

namespace lathe::data {

BertCharacters::BertCharacters(const NormalizerOptions& options) : table_(options) {
  for (std::size_t i = 0; i < class_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(i);
    class_[i] = plain_class_of(byte);
    result_[i] = static_cast<char>(byte);
    if (byte >= 0x80) continue;
    const CharacterTable::Entry& entry = table_.entry(byte);
    if (entry.length == 1) result_[i] = table_.replacement(entry)[0];
  }
}

ByteClass BertCharacters::plain_class_of(unsigned char byte) const {
  if (byte >= 0x80) return ByteClass::Wide;
  switch (table_.entry(byte).kind) {
    case CharacterKind::Word:
      return ByteClass::Word;
    case CharacterKind::Isolated:
      return ByteClass::Isolated;
    case CharacterKind::Space:
      return ByteClass::Space;
    default:
      return ByteClass::Removed;  // no ASCII character is a mark or decomposes
  }
}

}  // namespace lathe::data
