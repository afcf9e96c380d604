"""The rules by which the Stanford PTBTokenizer (CoreNLP 3.4.1) cuts English into tokens.

Only the rules: which strings are tokens, in order of preference. `lexer.py` runs them (the longest
match wins) and `ptb.py` says what becomes of each. They were learned from the tokeniser's published
grammars and its behaviour, and checked state by state against the automaton inside its jar (see
docs/guides/metrics.md).
"""

from __future__ import annotations

from sightline.metrics.lexer import Ranges, Rule, ranges

# The letters of Unicode 6.2, which the tokeniser knows; later ones it drops. A table and not
# `str.isalpha`, so that tokens do not change with the Python that runs.
_LETTERS = """
    41-5a 61-7a aa b5 ba c0-d6 d8-f6 f8-2c1 2c6-2d1 2e0-2e4 2ec 2ee 370-374 376-377 37a-37d 386
    388-38a 38c 38e-3a1 3a3-3f5 3f7-481 48a-527 531-556 559 561-587 5d0-5ea 5f0-5f2 620-64a
    66e-66f 671-6d3 6d5 6e5-6e6 6ee-6ef 6fa-6fc 6ff 710 712-72f 74d-7a5 7b1 7ca-7ea 7f4-7f5 7fa
    800-815 81a 824 828 840-858 8a0 8a2-8ac 904-939 93d 950 958-961 971-977 979-97f 985-98c
    98f-990 993-9a8 9aa-9b0 9b2 9b6-9b9 9bd 9ce 9dc-9dd 9df-9e1 9f0-9f1 a05-a0a a0f-a10 a13-a28
    a2a-a30 a32-a33 a35-a36 a38-a39 a59-a5c a5e a72-a74 a85-a8d a8f-a91 a93-aa8 aaa-ab0 ab2-ab3
    ab5-ab9 abd ad0 ae0-ae1 b05-b0c b0f-b10 b13-b28 b2a-b30 b32-b33 b35-b39 b3d b5c-b5d b5f-b61
    b71 b83 b85-b8a b8e-b90 b92-b95 b99-b9a b9c b9e-b9f ba3-ba4 ba8-baa bae-bb9 bd0 c05-c0c
    c0e-c10 c12-c28 c2a-c33 c35-c39 c3d c58-c59 c60-c61 c85-c8c c8e-c90 c92-ca8 caa-cb3 cb5-cb9
    cbd cde ce0-ce1 cf1-cf2 d05-d0c d0e-d10 d12-d3a d3d d4e d60-d61 d7a-d7f d85-d96 d9a-db1
    db3-dbb dbd dc0-dc6 e01-e30 e32-e33 e40-e46 e81-e82 e84 e87-e88 e8a e8d e94-e97 e99-e9f
    ea1-ea3 ea5 ea7 eaa-eab ead-eb0 eb2-eb3 ebd ec0-ec4 ec6 edc-edf f00 f40-f47 f49-f6c f88-f8c
    1000-102a 103f 1050-1055 105a-105d 1061 1065-1066 106e-1070 1075-1081 108e 10a0-10c5 10c7 10cd
    10d0-10fa 10fc-1248 124a-124d 1250-1256 1258 125a-125d 1260-1288 128a-128d 1290-12b0 12b2-12b5
    12b8-12be 12c0 12c2-12c5 12c8-12d6 12d8-1310 1312-1315 1318-135a 1380-138f 13a0-13f4 1401-166c
    166f-167f 1681-169a 16a0-16ea 1700-170c 170e-1711 1720-1731 1740-1751 1760-176c 176e-1770
    1780-17b3 17d7 17dc 1820-1877 1880-18a8 18aa 18b0-18f5 1900-191c 1950-196d 1970-1974 1980-19ab
    19c1-19c7 1a00-1a16 1a20-1a54 1aa7 1b05-1b33 1b45-1b4b 1b83-1ba0 1bae-1baf 1bba-1be5 1c00-1c23
    1c4d-1c4f 1c5a-1c7d 1ce9-1cec 1cee-1cf1 1cf5-1cf6 1d00-1dbf 1e00-1f15 1f18-1f1d 1f20-1f45
    1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc
    1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2071 207f 2090-209c 2102 2107 210a-2113 2115
    2119-211d 2124 2126 2128 212a-212d 212f-2139 213c-213f 2145-2149 214e 2183-2184 2c00-2c2e
    2c30-2c5e 2c60-2ce4 2ceb-2cee 2cf2-2cf3 2d00-2d25 2d27 2d2d 2d30-2d67 2d6f 2d80-2d96 2da0-2da6
    2da8-2dae 2db0-2db6 2db8-2dbe 2dc0-2dc6 2dc8-2dce 2dd0-2dd6 2dd8-2dde 2e2f 3005-3006 3031-3035
    303b-303c 3041-3096 309d-309f 30a1-30fa 30fc-30ff 3105-312d 3131-318e 31a0-31ba 31f0-31ff
    3400-4db5 4e00-9fcc a000-a48c a4d0-a4fd a500-a60c a610-a61f a62a-a62b a640-a66e a67f-a697
    a6a0-a6e5 a717-a71f a722-a788 a78b-a78e a790-a793 a7a0-a7aa a7f8-a801 a803-a805 a807-a80a
    a80c-a822 a840-a873 a882-a8b3 a8f2-a8f7 a8fb a90a-a925 a930-a946 a960-a97c a984-a9b2 a9cf
    aa00-aa28 aa40-aa42 aa44-aa4b aa60-aa76 aa7a aa80-aaaf aab1 aab5-aab6 aab9-aabd aac0 aac2
    aadb-aadd aae0-aaea aaf2-aaf4 ab01-ab06 ab09-ab0e ab11-ab16 ab20-ab26 ab28-ab2e abc0-abe2
    ac00-d7a3 d7b0-d7c6 d7cb-d7fb f900-fa6d fa70-fad9 fb00-fb06 fb13-fb17 fb1d fb1f-fb28 fb2a-fb36
    fb38-fb3c fb3e fb40-fb41 fb43-fb44 fb46-fbb1 fbd3-fd3d fd50-fd8f fd92-fdc7 fdf0-fdfb fe70-fe74
    fe76-fefc ff21-ff3a ff41-ff5a ff66-ffbe ffc2-ffc7 ffca-ffcf ffd2-ffd7 ffda-ffdc
"""
# The first of ten digits each.
_DIGITS = """
    30 660 6f0 7c0 966 9e6 a66 ae6 b66 be6 c66 ce6 d66 e50 ed0 f20 1040 1090 17e0 1810 1946 19d0
    1a80 1a90 1b50 1bb0 1c40 1c50 a620 a8d0 a900 a9d0 aa50 abf0 ff10
"""


def _table(text: str) -> Ranges:
    pairs = [item.split("-") for item in text.split()]
    return ranges(*[(int(pair[0], 16), int(pair[-1], 16)) for pair in pairs])


_DIGIT = ranges(*[(int(first, 16), int(first, 16) + 9) for first in _DIGITS.split()])

NAMES: dict[str, str | Ranges] = {
    "LETTER": _table(_LETTERS),
    "DIGIT": _DIGIT,
    "ALNUM": ranges(*_table(_LETTERS), *_DIGIT),
    # White space. U+0085 is an ellipsis before it is a line end: the rules' order decides.
    "SPACE": r"[ \t\u00A0\u2000-\u200A\u3000]",
    "NEWLINE": r"\r|\r?\n|[\u2028\u2029\u000B\u000C\u0085]",
    "BLANK": "{SPACE}|{NEWLINE}",
    # Words: letters, what belongs to them (soft hyphens, accents, vowel signs) and accented
    # vowels written as entities; digits after the first letter; dots and marks between parts.
    "SIGN": r"[\u00AD\u02C2-\u02C5\u02D2-\u02DF\u02E5-\u036F\u0375\u0378\u0379\u0384\u0385\u03F6"
    r"\u0483-\u0487\u055A-\u055F\u0591-\u05BD\u05BF\u05C1\u05C2\u05C4\u05C5\u05C7\u0615-\u061A"
    r"\u064B-\u065E\u0670\u06D6-\u06ED\u06FD\u06FE\u070F\u0711\u0730-\u074C\u07A6-\u07B0"
    r"\u07EB-\u07F3\u0900-\u0903\u093C\u093E-\u094E\u0951-\u0955\u0962\u0963\u0981-\u0983\u09BC"
    r"\u09BE-\u09C4\u09C7\u09C8\u09CB-\u09CD\u09D7\u09E2\u09E3\u0A01-\u0A03\u0A3C\u0A3E-\u0A4F"
    r"\u0A81-\u0A83\u0ABC\u0ABE-\u0ACF\u0B82\u0BBE-\u0BC2\u0BC6-\u0BC8\u0BCA-\u0BCD\u0C01-\u0C03"
    r"\u0C3E-\u0C56\u0D3E-\u0D44\u0D46-\u0D48\u0E31\u0E34-\u0E3A\u0E47-\u0E4E\u0EB1\u0EB4-\u0EBC"
    r"\u0EC8-\u0ECD]",
    "PART": "{LETTER}|{SIGN}|&[aeiouAEIOU](acute|grave|uml);",
    "WORD": "{PART}({PART}|{DIGIT})*([.!?]{PART}({PART}|{DIGIT})*)*",
    "HYPHEN": r"[-_\u058A\u2010\u2011]",
    # Apostrophes, and what else stands for one inside a word
    "APOS": r"['\u0092\u2019]|&apos;",
    "TICK": r"{APOS}|[`\u0091\u2018\u201B]",
    "AUX": "{APOS}([msdMSD]|re|ve|ll)",
    "NOT": "n{TICK}t",
    "NEGATED": r"[A-Za-z\u00AD]*[A-MO-Za-mo-z]\u00AD*",
    # Words whose apostrophe is no boundary: 'em, l', O'Brien, '90s, 'til, Shi'ite, …
    "WITH_APOS": r"{APOS}n{APOS}?|[lLdDjJ]{APOS}|(Dunkin|somethin|ol){APOS}|{APOS}(em|till?|cause)"
    r"|[A-HJ-XZn]{TICK}{LETTER}{2}{LETTER}*|{APOS}[2-9]0s|O{TICK}o"
    r"|{LETTER}+[aeiouyAEIOUY]{TICK}[aeiouA-Z]{LETTER}*"
    r"|cont'd\.?|'twas|nor'easter|c'mon|e'er|s'mores|ev'ry|li'l|nat'l",
    # Numbers
    "NUMBER": r"{DIGIT}+|{DIGIT}*([.:,\u00AD\u066B\u066C]{DIGIT}+)+",
    "DATE": r"{DIGIT}{1,2}[-/]{DIGIT}{1,2}[-/]{DIGIT}{2,4}",
    "SMALL_NUMBER": r"[\u207A\u207B\u208A\u208B]?([\u2070\u00B9\u00B2\u00B3\u2074-\u2079]+"
    r"|[\u2080-\u2089]+)",
    "FRACTION": r"({DIGIT}{1,4}{GAP})?{DIGIT}{1,4}(\\?/|\u2044){DIGIT}{1,4}",
    "GAP": r"[- \u00A0]",
    "PREFIX": r"\([0-9]{2,3}\)[ \u00A0]?|(\+{1,2})?([0-9]{2,4}{GAP}){1,2}",
    "PHONE": r"{PREFIX}[0-9]{3,4}{GAP}?[0-9]{3,5}"
    r"|((\+{1,2})?[0-9]{2,4}\.)?[0-9]{2,4}\.[0-9]{3,4}\.[0-9]{3,5}",
    "CURRENCY": r"[\u00A2-\u00A5\u0080\u20A0\u20AC\u060B\u0E3F\u20A4\uFFE0\uFFE1\uFFE5\uFFE6]",
    # Markup, addresses, file names, handles
    "XNAME": r"[A-Za-z][A-Za-z0-9_:.\-]*",
    # Quoted values stay on their line; the original's may go on, and its lines get out of step.
    "VALUE": r"'[^'\n]*'|\"[^\"\n]*\"",
    "TAG": r"<([!?][A-Za-z\-][^>\r\n]*|{XNAME}(\ +{XNAME}(\ *=\ *{VALUE})?)*\ */?|/{XNAME})\ *>",
    "URL_END": r"[^ \t\n\f\r\"<>|.!?(){},\-]",
    "PATH": r"[^ \t\n\f\r\"<>|()]+{URL_END}",
    "URL": r"https?://[^ \t\n\f\r\"<>|(){}]+{URL_END}",
    # The range ,-_ is a slip of the original (upper case and digits end a host name), kept.
    "HOST": r"(www\.([^ \t\n\f\r\"<>|.!?(){},]+\.)+[a-zA-Z]{2,4}"
    r"|([^ \t\n\f\r\"`'<>|.!?(){},-_$]+\.)+(com|net|org|edu))(/{PATH})?",
    "DOMAIN": r"[^ \t\n\f\r\"<>|(){}.\u00A0]+",
    "EMAIL": r"(&lt;|<)?[a-zA-Z0-9][^ \t\n\f\r\"<>|(){}\u00A0]*@({DOMAIN}\.)*{DOMAIN}(&gt;|>)?",
    "HANDLE": "@[a-zA-Z_][a-zA-Z_0-9]*|#{PART}+",
    "FILE": r"({PART}|{DIGIT})+(\.({PART}|{DIGIT})+)*\.(bat|bmp|c|class|cgi|cpp|dll|doc|docx|exe"
    r"|gif|gz|h|htm|html|jar|java|jpeg|jpg|mov|mp3|pdf|php|pl|png|ppt|ps|py|sql|tar|txt|wav|x|xml"
    r"|zip)",
    # Compounds: d'Avignon-style and hyphenated things, AT&T, and/or
    "PIECE": "([dDoOlL]{TICK}{ALNUM})?{ALNUM}+",
    "THING": "{PIECE}({HYPHEN}{PIECE})*",
    "HYPHENATED": r"[A-Za-z0-9][A-Za-z0-9.,\u00AD]*(-([A-Za-z0-9\u00AD]+|{DOTTED}\.))+",
    "FIRM": "[A-Z]+(([+&]|&amp;)[A-Z]+)+",
    "SIDE": "[A-Za-z0-9]+(-[A-Za-z]+){0,2}",
    "EITHER_OR": r"{SIDE}(\\?/{SIDE}){1,2}",
    # Abbreviations. Letters in brackets are case-sensitive: Miss. is a state, miss. is not.
    "US": r"(Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(U\.K|U\.S\.S\.R)",
    "DOTTED": r"[A-Za-z](\.[A-Za-z])+|{US}",
    "ACRONYM": r"[A-Za-z](\.[A-Za-z])*|{US}",
    "MONTH": "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec",
    "DAY": "Mon|Tue|Tues|Wed|Thu|Thurs|Fri",
    "STATE": "Ala|Ariz|[A]z|[A]rk|Calif|Colo|Conn|Ct|Dak|[D]el|Fla|Ga|[I]ll|Ind|Kans?|Ky|[L]a"
    "|[M]ass|Md|Mich|Minn|[M]iss|Mo|Mont|Neb|Nev|Okla|[O]re|[P]a|Penn|Tenn|[T]ex|Va|Vt|[W]ash"
    "|Wisc?|Wyo",
    "COMPANY": "Inc|Cos?|Corp|Pp?t[ye]s?|Ltd|Plc|Rt|Bancorp|Bhd|Assn|Univ|Intl|Sys",
    "AFTER_NAME": r"Jr|Sr|Bros|(Ed|Ph)\.D|Blvd|Rd|Esq",
    "ENDING": r"({MONTH}|{DAY}|{STATE}|{COMPANY}|{AFTER_NAME}|tel|est|ext|sq|etc|al|seq|Bldg)\.",
    "TITLE": "Mr|Mrs|Ms|[M]iss|Drs?|Profs?|Sens?|Reps?|Attys?|Lt|Col|Gen|Messrs|Govs?|Adm|Rev|Maj"
    "|Sgt|Cpl|Pvt|Mt|Capt|Ste?|Ave|Pres|Lieut|Hon|Brig|Co?mdr|Pfc|Spc|Supts?|Det|Ft|Adj|Adv|Asst"
    "|Assoc|Ens|Insp|Mlle|Mme|Msgr|Sfc",
    "LEADING": r"{TITLE}|vs|Alex|Wm|Jos|Cie|a\.k\.a|cf|TREAS|Ph|{ACRONYM}|Invt|Elec|Natl|M[ft]g"
    "|Dept",
    "BEFORE_NUMBER": r"(ca|figs?|prop|nos?|art|bldg|pp|op)\.",
    # Words that begin a sentence, so that the dot of an acronym before them is a full stop too
    "OPENER": r"[A]bout|[A]ccording|[A]dditionally|[A]fter|[A]n|[A]|[A]s|[A]t|[B]ut|[E]arlier|[H]e"
    r"|[H]er|[H]ere|[H]owever|[I]f|[I]n|[I]t|[L]ast|[M]any|[M]ore|[M]r\.|[M]s\.|[N]ow|[O]nce|[O]ne"
    r"|[O]ther|[O]ur|[S]he|[S]ince|[S]o|[S]ome|[S]uch|[T]hat|[T]he|[T]heir|[T]hen|[T]here|[T]hese"
    r"|[T]hey|[T]his|[W]e|[W]hen|[W]hile|[W]hat|[Y]et|[Y]ou|{TAG}",
    # Punctuation and symbols
    "DOUBLE": '"|&quot;',
    "QUOTE": r"{APOS}|''|[`\u2018-\u201F\u0091-\u0094\u2039\u203A\u00AB\u00BB]{1,2}",
    "SPECIAL": r"-(RRB|LRB|RCB|LCB|RSB|LSB)-|C\.D\.s|pro-|anti-|S(&|&amp;)P-500|S(&|&amp;)Ls"
    "|Cap{APOS}n|c{APOS}est",
    "SMILEY": r"[<>]?[:;=][\-o*']?[()DPdpO\\{@|\[\]]",
    "KAOMOJI": r"[\^x=~<>]\.\[\^x=[^<\n]*<>\]|[\-\^x=~<>']_[\-\^x=~<>']"
    r"|\([\-\^x=~<>'][_.]?[\-\^x=~<>']\)|\([\^x=~<>']-[\^x=~<>'`]\)",
    "MIDDLE": r"[,;:\u3001]",
    "DOTS": r"\.{3,5}|(\.[ \u00A0]){2,4}\.|[\u0085\u2026]",
    "STOP": r"[.\u00A1\u00BF\u037E\u0589\u061F\u06D4\u0700-\u0702\u07FA\u3002]",
    "SYMBOL": r"[+%&~\^|\\\u00A6-\u00A9\u00AC\u00AE-\u00BA\u00D7\u00F7\u0387\u05BE\u05C0\u05C3"
    r"\u05C6\u05F3\u05F4\u0600-\u0603\u0606-\u060A\u060C\u0614\u061B\u061E\u066A\u066D\u0703-\u070D"
    r"\u07F6-\u07F8\u0964\u0965\u0E4F\u1FBD\u2016\u2017\u2020-\u2023\u2030-\u2038\u203B"
    r"\u203E-\u2042\u2044\u207A-\u207F\u208A-\u208E\u2100-\u214F\u2190-\u2BFF\u3012\u30FB"
    r"\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65]",
}

# In order of preference among equally long matches. `ptb.py` says what each name means.
RULES = (
    Rule("token", r"c\+\+|(c|f)#"),
    Rule("cut 3", "cannot|'twas"),
    Rule("cut 2", "'tis|gonna|gotta|lemme|gimme|wanna"),
    Rule("spaced", "{TAG}"),
    Rule("dash", r"&(MD|mdash|ndash);|[\u0096\u0097\u2013-\u2015]"),
    Rule("ampersand", "&amp;"),
    Rule("token", "&(HT|TL|UR|LR|QC|QL|QR|odq|cdq|#[0-9]+);"),
    Rule("word", "{WORD}", "{AUX}"),
    Rule("word", "{NEGATED}", "{NOT}"),
    Rule("word", "{WORD}"),
    Rule("token", "{WITH_APOS}"),
    Rule("token", "y{APOS}", "{LETTER}"),
    Rule("token", "{URL}|{HOST}"),
    Rule("token", "{EMAIL}|{HANDLE}"),
    Rule("closing quote", "{AUX}|{NOT}", "[^A-Za-z]"),
    Rule("token", "{DATE}"),
    Rule("word", r"[-+]?({NUMBER})"),
    Rule("token", "{SMALL_NUMBER}"),
    Rule("spaced", "{FRACTION}"),
    Rule("fraction", r"[\u00BC-\u00BE\u2153-\u215E]"),
    Rule("ampersand", "{SPECIAL}"),
    Rule("token", "{EITHER_OR}"),
    Rule("token", r"[A-Z]*\$|#"),
    Rule("currency", "{CURRENCY}"),
    Rule("acronym", r"({ACRONYM})\.", "({BLANK})+({OPENER})({BLANK})"),
    Rule("token", "{BEFORE_NUMBER}", "({BLANK})?{DIGIT}"),
    Rule("token", r"(pt[eyEY]|co)\.", "{SPACE}(ltd|lim)"),
    # The dot of these is a full stop as well before a capital. That stop is dropped with all
    # punctuation, so the capitals of other alphabets, which the original knows, change nothing.
    Rule("dot twice", "{ENDING}", "({BLANK})({BLANK}|[A-Z]|{TAG})"),
    Rule("token", "{ENDING}", "[^][^]"),
    Rule("dot twice", "{ENDING}"),
    Rule("token", r"({LEADING})\."),
    Rule("token", "{LEADING}", "{SPACE}"),
    Rule("token", "{ACRONYM}", "{BLANK}"),
    Rule("token", "{APOS}[0-9][0-9]", "{BLANK}"),
    Rule("token", "{FILE}", "{BLANK}|[.?!,]"),
    Rule("word", r"{WORD}\.", "{MIDDLE}"),
    Rule("phone", "{PHONE}"),
    Rule("opening quote", "{DOUBLE}", "[A-Za-z0-9$]"),
    Rule("closing quote", "{DOUBLE}"),
    Rule("nothing", r"\u007F"),
    Rule("<", "<|&lt;"),
    Rule(">", ">|&gt;"),
    Rule("smiley", "{SMILEY}", "[^A-Za-z0-9]"),
    Rule("smiley", "{KAOMOJI}"),
    Rule("-LCB-", r"\{"),
    Rule("-RCB-", r"\}"),
    Rule("-LSB-", r"\["),
    Rule("-RSB-", r"\]"),
    Rule("-LRB-", r"\("),
    Rule("-RRB-", r"\)"),
    Rule("hyphens", "-+"),
    Rule("...", "{DOTS}"),
    Rule("token", r"@+|#+|_+|\*+|(\\\*){1,3}|{MIDDLE}|[?!]+|{STOP}|=|/"),
    Rule("word", r"{HYPHENATED}\.", "{MIDDLE}"),
    Rule("word", "{HYPHENATED}"),
    Rule("token", r"{THING}\.", "{MIDDLE}"),
    Rule("token", "{THING}"),
    Rule("ampersand", r"{FIRM}\.", "{MIDDLE}"),
    Rule("ampersand", "{FIRM}"),
    Rule("opening quote", "'", r"[A-Za-z][^ \t\n\r\u00A0]"),
    Rule("closing quote", "{AUX}|{NOT}|{QUOTE}"),
    Rule("token", "<<|>>|{SYMBOL}"),
    Rule("nothing", r"\0|({SPACE})+|[\u200B\u200E\u200F\uFEFF]|&nbsp;|{NEWLINE}"),
    Rule("nothing", r"[^\n]"),  # what no other rule knows is dropped
)
