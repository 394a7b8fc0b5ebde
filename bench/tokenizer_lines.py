"""Lines of what tokenizers stumble over, for the rivals that compare ids."""

SNIPPETS = [
    # prose and contractions
    "the", " film", " wasn't", "it's", " they'll", "I'VE", " don't", "'tis", " rock'n'roll", "naïve",
    # white space of every kind; "\n" would end the line
    " ", "  ", "     ", "\t", "\t\t", "\v", "\f", "\u0085", "\u00a0", "\u2003", "\u3000", "\u2028",
    # code
    "if (x == 0) {", "}", "return *p++;", "def f(a, b=None):", "    ", "a[i]->next", "<div class=\"x\">",
    "0xDEADBEEF", "/* note */", "// TODO", "std::vector<int>", "SELECT * FROM t;", "\\n", "$HOME/.cfg",
    # numbers
    "0", "42", "1,000,000.5", "3.14e-10", "½", "²", "Ⅷ", "٣٤", "一二三",
    # scripts
    "中文分词", "日本語のテキスト", "한국어", "Привет", "مرحبا", "שלום", "हिन्दी", "ภาษาไทย", "Ελλάδα",
    # marks, joiners, emoji
    "e\u0301", "a\u0328\u0301", "👍", "👍🏽", "👩\u200d🚀", "🇨🇭", "❤\ufe0f", "\u200b", "\u200d", "\ufeff",
    # controls and what is hardly ever seen
    "\x00", "\x01", "\x07", "\x1b[31m", "\x7f", "\u0080", "\ufffd", "\U0001f9ff", "\U00020000", "\U0010fffd",
    # punctuation and special tokens
    "...", "—", "“quoted”", "!?!", "#hashtag", "@user", "https://example.org/a?b=c", "<|endoftext|>",
    "<|endoftext", "[CLS]", "[SEP]", "[MASK]",
]


def make_line(rng, words):
    parts = []
    for _ in range(rng.randint(0, 24)):
        kind = rng.random()
        if kind < 0.45:
            parts.append(rng.choice(SNIPPETS))
        elif kind < 0.85 and words:
            parts.append(rng.choice((" ", "")) + rng.choice(words))
        else:
            code_point = rng.choice((rng.randrange(0x20, 0x300), rng.randrange(0x110000)))
            if not 0xD800 <= code_point <= 0xDFFF:
                parts.append(chr(code_point))
    # Our program reads lines: it drops "\r" at their end and ends them at "\n".
    return "".join(parts).replace("\n", " ").rstrip("\r")
