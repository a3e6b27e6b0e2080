"""The languages that Whisper knows, by code and by name."""

from collections.abc import Iterable

from beamless.inference.errors import BeamlessError
from beamless.inference.tokenizer import Tokenizer

AUTOMATIC = ("", "auto", "none")
WITHOUT_SPACES = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
"""Languages whose words are not parted by spaces."""

NAMES: dict[str, str] = {
    "af": "afrikaans",
    "am": "amharic",
    "ar": "arabic",
    "as": "assamese",
    "az": "azerbaijani",
    "ba": "bashkir",
    "be": "belarusian",
    "bg": "bulgarian",
    "bn": "bengali bangla",
    "bo": "tibetan",
    "br": "breton",
    "bs": "bosnian",
    "ca": "catalan valencian",
    "cs": "czech",
    "cy": "welsh",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish castilian",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian farsi",
    "fi": "finnish",
    "fo": "faroese",
    "fr": "french",
    "gl": "galician",
    "gu": "gujarati",
    "ha": "hausa",
    "haw": "hawaiian",
    "he": "hebrew",
    "hi": "hindi",
    "hr": "croatian",
    "ht": "haitian haitian-creole",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "is": "icelandic",
    "it": "italian",
    "ja": "japanese",
    "jw": "javanese",
    "ka": "georgian",
    "kk": "kazakh",
    "km": "khmer",
    "kn": "kannada",
    "ko": "korean",
    "la": "latin",
    "lb": "luxembourgish letzeburgesch",
    "ln": "lingala",
    "lo": "lao",
    "lt": "lithuanian",
    "lv": "latvian",
    "mg": "malagasy",
    "mi": "maori",
    "mk": "macedonian",
    "ml": "malayalam",
    "mn": "mongolian",
    "mr": "marathi",
    "ms": "malay",
    "mt": "maltese",
    "my": "myanmar burmese",
    "ne": "nepali",
    "nl": "dutch flemish",
    "nn": "nynorsk",
    "no": "norwegian bokmål",
    "oc": "occitan",
    "pa": "punjabi panjabi",
    "pl": "polish",
    "ps": "pashto pushto",
    "pt": "portuguese",
    "ro": "romanian moldavian moldovan",
    "ru": "russian",
    "sa": "sanskrit",
    "sd": "sindhi",
    "si": "sinhala sinhalese",
    "sk": "slovak",
    "sl": "slovenian slovene",
    "sn": "shona",
    "so": "somali",
    "sq": "albanian",
    "sr": "serbian",
    "su": "sundanese",
    "sv": "swedish",
    "sw": "swahili",
    "ta": "tamil",
    "te": "telugu",
    "tg": "tajik",
    "th": "thai",
    "tk": "turkmen",
    "tl": "tagalog filipino",
    "tr": "turkish",
    "tt": "tatar",
    "uk": "ukrainian",
    "ur": "urdu",
    "uz": "uzbek",
    "vi": "vietnamese",
    "yi": "yiddish",
    "yo": "yoruba",
    "yue": "cantonese",
    "zh": "chinese mandarin",
}
OTHER_CODES = {"jv": "jw", "iw": "he", "in": "id", "fil": "tl", "nb": "no", "cmn": "zh"}
BY_NAME = {name: code for code, names in NAMES.items() for name in names.split()}


def language_code(wanted: str | None, known: Iterable[str]) -> str | None:
    """Return the code of a language, or None where it is to be detected.

    Args:
        wanted: a code (``sv``), one with a region (``sv-SE``), Whisper's token (``<|sv|>``) or an
            English name (``Swedish``), in any case; None, empty or ``auto`` to detect it.
        known: the codes that the model knows.

    Raises:
        BeamlessError: the model does not know it.
    """
    plain = (wanted or "").strip().removeprefix("<|").removesuffix("|>").lower().replace("_", "-")
    if plain in AUTOMATIC:
        return None
    known = list(known)
    for candidate in (plain, "-".join(plain.split()), plain.split("-")[0]):
        code = BY_NAME.get(candidate, OTHER_CODES.get(candidate, candidate))
        if code in known:
            return code
    raise BeamlessError(f"there is no language {wanted!r}; known are: {' '.join(known)}")


def requested_language(wanted: str | None, tokenizer: Tokenizer) -> str | None:
    """Return the code of the language asked for, or None where the model is to detect it.

    Raises:
        BeamlessError: the model does not know it.
    """
    if tokenizer.multilingual:
        return language_code(wanted, tokenizer.languages)
    if language_code(wanted, NAMES) not in (None, "en"):
        raise BeamlessError(f"an English-only model knows no {wanted!r}; take a multilingual one")
    return "en"


def named_language(wanted: str, tokenizer: Tokenizer) -> str:
    """Return the code of the language asked for, where there is nothing to detect it from.

    Raises:
        BeamlessError: the model does not know it, or it is left open.
    """
    code = requested_language(wanted, tokenizer)
    if code is None:
        raise BeamlessError(f"--language {wanted} leaves open what is spoken; name the language")
    return code


def joined(texts: Iterable[str], language: str) -> str:
    """Join the texts of segments as the language writes them."""
    spoken = (text.strip() for text in texts)
    return ("" if language in WITHOUT_SPACES else " ").join(text for text in spoken if text)
