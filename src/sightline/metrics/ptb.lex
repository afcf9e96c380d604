# The rules by which the Stanford PTBTokenizer (CoreNLP 3.4.1) cuts English into tokens.
#
# Only the rules: which strings are tokens, in order of preference. lexer.py reads and runs them (its docstring has the
# language of the patterns; the longest match wins) and ptb.py says what becomes of each. They were learned from the
# tokeniser's published grammars and its behaviour, and checked state by state against the automaton inside its jar
# (see docs/guides/metrics.md).
#
# Fields are separated by tabs; a line that begins with a tab continues the one before. First the definitions: name,
# pattern.

# The letters of Unicode 6.2, which the tokeniser knows; later ones it drops. A table, so that tokens do not change
# with the Unicode of the Python that runs.
LETTER	[\u0041-\u005A\u0061-\u007A\u00AA\u00B5\u00BA\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02C1\u02C6-\u02D1\u02E0-\u02E4
	\u02EC\u02EE\u0370-\u0374\u0376-\u0377\u037A-\u037D\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5
	\u03F7-\u0481\u048A-\u0527\u0531-\u0556\u0559\u0561-\u0587\u05D0-\u05EA\u05F0-\u05F2\u0620-\u064A\u066E-\u066F
	\u0671-\u06D3\u06D5\u06E5-\u06E6\u06EE-\u06EF\u06FA-\u06FC\u06FF\u0710\u0712-\u072F\u074D-\u07A5\u07B1
	\u07CA-\u07EA\u07F4-\u07F5\u07FA\u0800-\u0815\u081A\u0824\u0828\u0840-\u0858\u08A0\u08A2-\u08AC\u0904-\u0939
	\u093D\u0950\u0958-\u0961\u0971-\u0977\u0979-\u097F\u0985-\u098C\u098F-\u0990\u0993-\u09A8\u09AA-\u09B0\u09B2
	\u09B6-\u09B9\u09BD\u09CE\u09DC-\u09DD\u09DF-\u09E1\u09F0-\u09F1\u0A05-\u0A0A\u0A0F-\u0A10\u0A13-\u0A28
	\u0A2A-\u0A30\u0A32-\u0A33\u0A35-\u0A36\u0A38-\u0A39\u0A59-\u0A5C\u0A5E\u0A72-\u0A74\u0A85-\u0A8D\u0A8F-\u0A91
	\u0A93-\u0AA8\u0AAA-\u0AB0\u0AB2-\u0AB3\u0AB5-\u0AB9\u0ABD\u0AD0\u0AE0-\u0AE1\u0B05-\u0B0C\u0B0F-\u0B10
	\u0B13-\u0B28\u0B2A-\u0B30\u0B32-\u0B33\u0B35-\u0B39\u0B3D\u0B5C-\u0B5D\u0B5F-\u0B61\u0B71\u0B83\u0B85-\u0B8A
	\u0B8E-\u0B90\u0B92-\u0B95\u0B99-\u0B9A\u0B9C\u0B9E-\u0B9F\u0BA3-\u0BA4\u0BA8-\u0BAA\u0BAE-\u0BB9\u0BD0
	\u0C05-\u0C0C\u0C0E-\u0C10\u0C12-\u0C28\u0C2A-\u0C33\u0C35-\u0C39\u0C3D\u0C58-\u0C59\u0C60-\u0C61\u0C85-\u0C8C
	\u0C8E-\u0C90\u0C92-\u0CA8\u0CAA-\u0CB3\u0CB5-\u0CB9\u0CBD\u0CDE\u0CE0-\u0CE1\u0CF1-\u0CF2\u0D05-\u0D0C
	\u0D0E-\u0D10\u0D12-\u0D3A\u0D3D\u0D4E\u0D60-\u0D61\u0D7A-\u0D7F\u0D85-\u0D96\u0D9A-\u0DB1\u0DB3-\u0DBB\u0DBD
	\u0DC0-\u0DC6\u0E01-\u0E30\u0E32-\u0E33\u0E40-\u0E46\u0E81-\u0E82\u0E84\u0E87-\u0E88\u0E8A\u0E8D\u0E94-\u0E97
	\u0E99-\u0E9F\u0EA1-\u0EA3\u0EA5\u0EA7\u0EAA-\u0EAB\u0EAD-\u0EB0\u0EB2-\u0EB3\u0EBD\u0EC0-\u0EC4\u0EC6
	\u0EDC-\u0EDF\u0F00\u0F40-\u0F47\u0F49-\u0F6C\u0F88-\u0F8C\u1000-\u102A\u103F\u1050-\u1055\u105A-\u105D\u1061
	\u1065-\u1066\u106E-\u1070\u1075-\u1081\u108E\u10A0-\u10C5\u10C7\u10CD\u10D0-\u10FA\u10FC-\u1248\u124A-\u124D
	\u1250-\u1256\u1258\u125A-\u125D\u1260-\u1288\u128A-\u128D\u1290-\u12B0\u12B2-\u12B5\u12B8-\u12BE\u12C0
	\u12C2-\u12C5\u12C8-\u12D6\u12D8-\u1310\u1312-\u1315\u1318-\u135A\u1380-\u138F\u13A0-\u13F4\u1401-\u166C
	\u166F-\u167F\u1681-\u169A\u16A0-\u16EA\u1700-\u170C\u170E-\u1711\u1720-\u1731\u1740-\u1751\u1760-\u176C
	\u176E-\u1770\u1780-\u17B3\u17D7\u17DC\u1820-\u1877\u1880-\u18A8\u18AA\u18B0-\u18F5\u1900-\u191C\u1950-\u196D
	\u1970-\u1974\u1980-\u19AB\u19C1-\u19C7\u1A00-\u1A16\u1A20-\u1A54\u1AA7\u1B05-\u1B33\u1B45-\u1B4B\u1B83-\u1BA0
	\u1BAE-\u1BAF\u1BBA-\u1BE5\u1C00-\u1C23\u1C4D-\u1C4F\u1C5A-\u1C7D\u1CE9-\u1CEC\u1CEE-\u1CF1\u1CF5-\u1CF6
	\u1D00-\u1DBF\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D
	\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4
	\u1FF6-\u1FFC\u2071\u207F\u2090-\u209C\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128
	\u212A-\u212D\u212F-\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183-\u2184\u2C00-\u2C2E\u2C30-\u2C5E\u2C60-\u2CE4
	\u2CEB-\u2CEE\u2CF2-\u2CF3\u2D00-\u2D25\u2D27\u2D2D\u2D30-\u2D67\u2D6F\u2D80-\u2D96\u2DA0-\u2DA6\u2DA8-\u2DAE
	\u2DB0-\u2DB6\u2DB8-\u2DBE\u2DC0-\u2DC6\u2DC8-\u2DCE\u2DD0-\u2DD6\u2DD8-\u2DDE\u2E2F\u3005-\u3006\u3031-\u3035
	\u303B-\u303C\u3041-\u3096\u309D-\u309F\u30A1-\u30FA\u30FC-\u30FF\u3105-\u312D\u3131-\u318E\u31A0-\u31BA
	\u31F0-\u31FF\u3400-\u4DB5\u4E00-\u9FCC\uA000-\uA48C\uA4D0-\uA4FD\uA500-\uA60C\uA610-\uA61F\uA62A-\uA62B
	\uA640-\uA66E\uA67F-\uA697\uA6A0-\uA6E5\uA717-\uA71F\uA722-\uA788\uA78B-\uA78E\uA790-\uA793\uA7A0-\uA7AA
	\uA7F8-\uA801\uA803-\uA805\uA807-\uA80A\uA80C-\uA822\uA840-\uA873\uA882-\uA8B3\uA8F2-\uA8F7\uA8FB\uA90A-\uA925
	\uA930-\uA946\uA960-\uA97C\uA984-\uA9B2\uA9CF\uAA00-\uAA28\uAA40-\uAA42\uAA44-\uAA4B\uAA60-\uAA76\uAA7A
	\uAA80-\uAAAF\uAAB1\uAAB5-\uAAB6\uAAB9-\uAABD\uAAC0\uAAC2\uAADB-\uAADD\uAAE0-\uAAEA\uAAF2-\uAAF4\uAB01-\uAB06
	\uAB09-\uAB0E\uAB11-\uAB16\uAB20-\uAB26\uAB28-\uAB2E\uABC0-\uABE2\uAC00-\uD7A3\uD7B0-\uD7C6\uD7CB-\uD7FB
	\uF900-\uFA6D\uFA70-\uFAD9\uFB00-\uFB06\uFB13-\uFB17\uFB1D\uFB1F-\uFB28\uFB2A-\uFB36\uFB38-\uFB3C\uFB3E
	\uFB40-\uFB41\uFB43-\uFB44\uFB46-\uFBB1\uFBD3-\uFD3D\uFD50-\uFD8F\uFD92-\uFDC7\uFDF0-\uFDFB\uFE70-\uFE74
	\uFE76-\uFEFC\uFF21-\uFF3A\uFF41-\uFF5A\uFF66-\uFFBE\uFFC2-\uFFC7\uFFCA-\uFFCF\uFFD2-\uFFD7\uFFDA-\uFFDC]
DIGIT	[\u0030-\u0039\u0660-\u0669\u06F0-\u06F9\u07C0-\u07C9\u0966-\u096F\u09E6-\u09EF\u0A66-\u0A6F\u0AE6-\u0AEF
	\u0B66-\u0B6F\u0BE6-\u0BEF\u0C66-\u0C6F\u0CE6-\u0CEF\u0D66-\u0D6F\u0E50-\u0E59\u0ED0-\u0ED9\u0F20-\u0F29
	\u1040-\u1049\u1090-\u1099\u17E0-\u17E9\u1810-\u1819\u1946-\u194F\u19D0-\u19D9\u1A80-\u1A89\u1A90-\u1A99
	\u1B50-\u1B59\u1BB0-\u1BB9\u1C40-\u1C49\u1C50-\u1C59\uA620-\uA629\uA8D0-\uA8D9\uA900-\uA909\uA9D0-\uA9D9
	\uAA50-\uAA59\uABF0-\uABF9\uFF10-\uFF19]
ALNUM	{LETTER}|{DIGIT}
# White space. U+0085 is an ellipsis before it is a line end: the rules' order decides.
SPACE	[ \t\u00A0\u2000-\u200A\u3000]
NEWLINE	\r|\r?\n|[\u2028\u2029\u000B\u000C\u0085]
BLANK	{SPACE}|{NEWLINE}
# Words: letters, what belongs to them (soft hyphens, accents, vowel signs) and accented
# vowels written as entities; digits after the first letter; dots and marks between parts.
SIGN	[\u00AD\u02C2-\u02C5\u02D2-\u02DF\u02E5-\u036F\u0375\u0378\u0379\u0384\u0385\u03F6\u0483-\u0487\u055A-\u055F
	\u0591-\u05BD\u05BF\u05C1\u05C2\u05C4\u05C5\u05C7\u0615-\u061A\u064B-\u065E\u0670\u06D6-\u06ED\u06FD\u06FE
	\u070F\u0711\u0730-\u074C\u07A6-\u07B0\u07EB-\u07F3\u0900-\u0903\u093C\u093E-\u094E\u0951-\u0955\u0962\u0963
	\u0981-\u0983\u09BC\u09BE-\u09C4\u09C7\u09C8\u09CB-\u09CD\u09D7\u09E2\u09E3\u0A01-\u0A03\u0A3C\u0A3E-\u0A4F
	\u0A81-\u0A83\u0ABC\u0ABE-\u0ACF\u0B82\u0BBE-\u0BC2\u0BC6-\u0BC8\u0BCA-\u0BCD\u0C01-\u0C03\u0C3E-\u0C56
	\u0D3E-\u0D44\u0D46-\u0D48\u0E31\u0E34-\u0E3A\u0E47-\u0E4E\u0EB1\u0EB4-\u0EBC\u0EC8-\u0ECD]
PART	{LETTER}|{SIGN}|&[aeiouAEIOU](acute|grave|uml);
WORD	{PART}({PART}|{DIGIT})*([.!?]{PART}({PART}|{DIGIT})*)*
HYPHEN	[-_\u058A\u2010\u2011]
# Apostrophes, and what else stands for one inside a word
APOS	['\u0092\u2019]|&apos;
TICK	{APOS}|[`\u0091\u2018\u201B]
AUX	{APOS}([msdMSD]|re|ve|ll)
NOT	n{TICK}t
NEGATED	[A-Za-z\u00AD]*[A-MO-Za-mo-z]\u00AD*
# Words whose apostrophe is no boundary: 'em, l', O'Brien, '90s, 'til, Shi'ite, …
WITH_APOS	{APOS}n{APOS}?|[lLdDjJ]{APOS}|(Dunkin|somethin|ol){APOS}|{APOS}(em|till?|cause)
	|[A-HJ-XZn]{TICK}{LETTER}{2}{LETTER}*|{APOS}[2-9]0s|O{TICK}o|{LETTER}+[aeiouyAEIOUY]{TICK}[aeiouA-Z]{LETTER}*
	|cont'd\.?|'twas|nor'easter|c'mon|e'er|s'mores|ev'ry|li'l|nat'l
# Numbers
NUMBER	{DIGIT}+|{DIGIT}*([.:,\u00AD\u066B\u066C]{DIGIT}+)+
DATE	{DIGIT}{1,2}[-/]{DIGIT}{1,2}[-/]{DIGIT}{2,4}
SMALL_NUMBER	[\u207A\u207B\u208A\u208B]?([\u2070\u00B9\u00B2\u00B3\u2074-\u2079]+|[\u2080-\u2089]+)
GAP	[- \u00A0]
FRACTION	({DIGIT}{1,4}{GAP})?{DIGIT}{1,4}(\\?/|\u2044){DIGIT}{1,4}
PREFIX	\([0-9]{2,3}\)[ \u00A0]?|(\+{1,2})?([0-9]{2,4}{GAP}){1,2}
PHONE	{PREFIX}[0-9]{3,4}{GAP}?[0-9]{3,5}|((\+{1,2})?[0-9]{2,4}\.)?[0-9]{2,4}\.[0-9]{3,4}\.[0-9]{3,5}
CURRENCY	[\u00A2-\u00A5\u0080\u20A0\u20AC\u060B\u0E3F\u20A4\uFFE0\uFFE1\uFFE5\uFFE6]
# Markup, addresses, file names, handles
XNAME	[A-Za-z][A-Za-z0-9_:.\-]*
# Quoted values stay on their line; the original's may continue, and its lines get out of step.
VALUE	'[^'\n]*'|\"[^\"\n]*\"
TAG	<([!?][A-Za-z\-][^>\r\n]*|{XNAME}(\ +{XNAME}(\ *=\ *{VALUE})?)*\ */?|/{XNAME})\ *>
URL_END	[^ \t\n\f\r\"<>|.!?(){},\-]
PATH	[^ \t\n\f\r\"<>|()]+{URL_END}
URL	https?://[^ \t\n\f\r\"<>|(){}]+{URL_END}
# The range ,-_ is a slip of the original (upper case and digits end a host name), kept.
HOST	(www\.([^ \t\n\f\r\"<>|.!?(){},]+\.)+[a-zA-Z]{2,4}|([^ \t\n\f\r\"`'<>|.!?(){},-_$]+\.)+(com|net|org
	|edu))(/{PATH})?
DOMAIN	[^ \t\n\f\r\"<>|(){}.\u00A0]+
EMAIL	(&lt;|<)?[a-zA-Z0-9][^ \t\n\f\r\"<>|(){}\u00A0]*@({DOMAIN}\.)*{DOMAIN}(&gt;|>)?
HANDLE	@[a-zA-Z_][a-zA-Z_0-9]*|#{PART}+
FILE	({PART}|{DIGIT})+(\.({PART}|{DIGIT})+)*\.(bat|bmp|c|class|cgi|cpp|dll|doc|docx|exe|gif|gz|h|htm|html|jar|java
	|jpeg|jpg|mov|mp3|pdf|php|pl|png|ppt|ps|py|sql|tar|txt|wav|x|xml|zip)
# Compounds: d'Avignon-style and hyphenated things, AT&T, and/or
PIECE	([dDoOlL]{TICK}{ALNUM})?{ALNUM}+
THING	{PIECE}({HYPHEN}{PIECE})*
# Abbreviations. Letters in brackets are case-sensitive: Miss. is a state, miss. is not.
US	(Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(U\.K|U\.S\.S\.R)
DOTTED	[A-Za-z](\.[A-Za-z])+|{US}
HYPHENATED	[A-Za-z0-9][A-Za-z0-9.,\u00AD]*(-([A-Za-z0-9\u00AD]+|{DOTTED}\.))+
FIRM	[A-Z]+(([+&]|&amp;)[A-Z]+)+
SIDE	[A-Za-z0-9]+(-[A-Za-z]+){0,2}
EITHER_OR	{SIDE}(\\?/{SIDE}){1,2}
ACRONYM	[A-Za-z](\.[A-Za-z])*|{US}
MONTH	Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec
DAY	Mon|Tue|Tues|Wed|Thu|Thurs|Fri
STATE	Ala|Ariz|[A]z|[A]rk|Calif|Colo|Conn|Ct|Dak|[D]el|Fla|Ga|[I]ll|Ind|Kans?|Ky|[L]a|[M]ass|Md|Mich|Minn|[M]iss|Mo
	|Mont|Neb|Nev|Okla|[O]re|[P]a|Penn|Tenn|[T]ex|Va|Vt|[W]ash|Wisc?|Wyo
COMPANY	Inc|Cos?|Corp|Pp?t[ye]s?|Ltd|Plc|Rt|Bancorp|Bhd|Assn|Univ|Intl|Sys
AFTER_NAME	Jr|Sr|Bros|(Ed|Ph)\.D|Blvd|Rd|Esq
ENDING	({MONTH}|{DAY}|{STATE}|{COMPANY}|{AFTER_NAME}|tel|est|ext|sq|etc|al|seq|Bldg)\.
TITLE	Mr|Mrs|Ms|[M]iss|Drs?|Profs?|Sens?|Reps?|Attys?|Lt|Col|Gen|Messrs|Govs?|Adm|Rev|Maj|Sgt|Cpl|Pvt|Mt|Capt|Ste?
	|Ave|Pres|Lieut|Hon|Brig|Co?mdr|Pfc|Spc|Supts?|Det|Ft|Adj|Adv|Asst|Assoc|Ens|Insp|Mlle|Mme|Msgr|Sfc
LEADING	{TITLE}|vs|Alex|Wm|Jos|Cie|a\.k\.a|cf|TREAS|Ph|{ACRONYM}|Invt|Elec|Natl|M[ft]g|Dept
BEFORE_NUMBER	(ca|figs?|prop|nos?|art|bldg|pp|op)\.
# Words that begin a sentence, so that the dot of an acronym before them is a full stop too
OPENER	[A]bout|[A]ccording|[A]dditionally|[A]fter|[A]n|[A]|[A]s|[A]t|[B]ut|[E]arlier|[H]e|[H]er|[H]ere|[H]owever|[I]f
	|[I]n|[I]t|[L]ast|[M]any|[M]ore|[M]r\.|[M]s\.|[N]ow|[O]nce|[O]ne|[O]ther|[O]ur|[S]he|[S]ince|[S]o|[S]ome
	|[S]uch|[T]hat|[T]he|[T]heir|[T]hen|[T]here|[T]hese|[T]hey|[T]his|[W]e|[W]hen|[W]hile|[W]hat|[Y]et|[Y]ou|{TAG}
# Punctuation and symbols
DOUBLE	"|&quot;
QUOTE	{APOS}|''|[`\u2018-\u201F\u0091-\u0094\u2039\u203A\u00AB\u00BB]{1,2}
SPECIAL	-(RRB|LRB|RCB|LCB|RSB|LSB)-|C\.D\.s|pro-|anti-|S(&|&amp;)P-500|S(&|&amp;)Ls|Cap{APOS}n|c{APOS}est
SMILEY	[<>]?[:;=][\-o*']?[()DPdpO\\{@|\[\]]
KAOMOJI	[\^x=~<>]\.\[\^x=[^<\n]*<>\]|[\-\^x=~<>']_[\-\^x=~<>']|\([\-\^x=~<>'][_.]?[\-\^x=~<>']\)|\([\^x=~<>']-[\^
	x=~<>'`]\)
MIDDLE	[,;:\u3001]
DOTS	\.{3,5}|(\.[ \u00A0]){2,4}\.|[\u0085\u2026]
STOP	[.\u00A1\u00BF\u037E\u0589\u061F\u06D4\u0700-\u0702\u07FA\u3002]
SYMBOL	[+%&~\^|\\\u00A6-\u00A9\u00AC\u00AE-\u00BA\u00D7\u00F7\u0387\u05BE\u05C0\u05C3\u05C6\u05F3\u05F4\u0600-\u0603
	\u0606-\u060A\u060C\u0614\u061B\u061E\u066A\u066D\u0703-\u070D\u07F6-\u07F8\u0964\u0965\u0E4F\u1FBD\u2016
	\u2017\u2020-\u2023\u2030-\u2038\u203B\u203E-\u2042\u2044\u207A-\u207F\u208A-\u208E\u2100-\u214F\u2190-\u2BFF
	\u3012\u30FB\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65]
%%
# The rules, in order of preference among equally long matches: what ptb.py does, pattern, what must follow.
token	c\+\+|(c|f)#
cut 3	cannot|'twas
cut 2	'tis|gonna|gotta|lemme|gimme|wanna
spaced	{TAG}
--	&(MD|mdash|ndash);|[\u0096\u0097\u2013-\u2015]
ampersand	&amp;
token	&(HT|TL|UR|LR|QC|QL|QR|odq|cdq|#[0-9]+);
word	{WORD}	{AUX}
word	{NEGATED}	{NOT}
word	{WORD}
token	{WITH_APOS}
token	y{APOS}	{LETTER}
token	{URL}|{HOST}
token	{EMAIL}|{HANDLE}
closing quote	{AUX}|{NOT}	[^A-Za-z]
token	{DATE}
word	[-+]?({NUMBER})
token	{SMALL_NUMBER}
spaced	{FRACTION}
fraction	[\u00BC-\u00BE\u2153-\u215E]
ampersand	{SPECIAL}
token	{EITHER_OR}
token	[A-Z]*\$|#
currency	{CURRENCY}
acronym	({ACRONYM})\.	({BLANK})+({OPENER})({BLANK})
token	{BEFORE_NUMBER}	({BLANK})?{DIGIT}
token	(pt[eyEY]|co)\.	{SPACE}(ltd|lim)
# The dot of these is a full stop as well before a capital. That stop is dropped with all
# punctuation, so the capitals of other alphabets, which the original knows, change nothing.
dot twice	{ENDING}	({BLANK})({BLANK}|[A-Z]|{TAG})
token	{ENDING}	[^][^]
dot twice	{ENDING}
token	({LEADING})\.
token	{LEADING}	{SPACE}
token	{ACRONYM}	{BLANK}
token	{APOS}[0-9][0-9]	{BLANK}
token	{FILE}	{BLANK}|[.?!,]
word	{WORD}\.	{MIDDLE}
phone	{PHONE}
opening quote	{DOUBLE}	[A-Za-z0-9$]
closing quote	{DOUBLE}
nothing	\u007F
<	<|&lt;
>	>|&gt;
smiley	{SMILEY}	[^A-Za-z0-9]
smiley	{KAOMOJI}
-LCB-	\{
-RCB-	\}
-LSB-	\[
-RSB-	\]
-LRB-	\(
-RRB-	\)
hyphens	-+
...	{DOTS}
token	@+|#+|_+|\*+|(\\\*){1,3}|{MIDDLE}|[?!]+|{STOP}|=|/
word	{HYPHENATED}\.	{MIDDLE}
word	{HYPHENATED}
token	{THING}\.	{MIDDLE}
token	{THING}
ampersand	{FIRM}\.	{MIDDLE}
ampersand	{FIRM}
opening quote	'	[A-Za-z][^ \t\n\r\u00A0]
closing quote	{AUX}|{NOT}|{QUOTE}
token	<<|>>|{SYMBOL}
nothing	\0|({SPACE})+|[\u200B\u200E\u200F\uFEFF]|&nbsp;|{NEWLINE}
# What no other rule knows is dropped.
nothing	[^\n]
