"""Word lists of the polarity operators, written by hand for this project."""

from __future__ import annotations

from .edit import words

_OPPOSITES = """
increase/decrease increased/decreased increases/decreases increasing/decreasing rose/fell risen/fallen
rising/falling higher/lower highest/lowest high/low more/less most/least larger/smaller largest/smallest
large/small big/small bigger/smaller greater/smaller,lesser longer/shorter longest/shortest long/short
older/younger oldest/youngest early/late earlier/later earliest/latest before/after after/before first/last
best/worst better/worse good/poor,bad strong/weak stronger/weaker strongest/weakest won/lost win/lose
wins/loses winning/losing success/failure successful/unsuccessful successfully/unsuccessfully
accepted/rejected accept/reject accepts/rejects approved/rejected supported/opposed support/oppose
supports/opposes agreed/disagreed agree/disagree allowed/forbidden allow/prevent allows/prevents
allowing/preventing included/excluded include/exclude includes/excludes inside/outside above/below over/under
up/down upper/lower northern/southern eastern/western north/south east/west male/female man/woman men/women
father/mother son/daughter brother/sister husband/wife boy/girl public/private major/minor positive/negative
positively/negatively improve/worsen improved/worsened improves/worsens improvement/decline growth/decline
grow/shrink grew/shrank gain/loss gains/losses gained/lost profit/loss profitable/unprofitable easy/difficult
easier/harder easily/hardly simple/complex common/rare popular/unpopular often/rarely frequently/rarely
usually/seldom always/never never/always everyone/nobody cheap/expensive cheaper/pricier safe/dangerous
hot/cold warm/cool wet/dry fast/slow faster/slower quickly/slowly rapidly/slowly new/old modern/ancient
young/old open/closed opened/closed opens/closes begin/end began/ended begins/ends beginning/end started/ended
start/finish arrived/left arrive/leave enter/exit entered/left full/empty rich/poor wealthy/poor legal/illegal
possible/impossible likely/unlikely able/unable aware/unaware necessary/unnecessary important/unimportant
significant/negligible significantly/slightly substantial/negligible substantially/slightly true/false
correct/incorrect known/unknown alive/dead near/far,"far from" top/bottom front/back left/right
maximum/minimum majority/minority advantage/disadvantage strength/weakness friendly/hostile happy/unhappy
satisfied/dissatisfied optimistic/pessimistic confident/doubtful recommend/discourage recommends/discourages
encouraged/discouraged encourage/discourage encourages/discourages permanent/temporary voluntary/mandatory
required/optional together/separately same/different similar/different direct/indirect directly/indirectly
domestic/foreign internal/external local/international urban/rural natural/artificial guilty/innocent
deny/confirm denied/confirmed denies/confirms praised/criticized praise/criticism love/hate loved/hated
loves/hates liked/disliked remember/forget remembers/forgets bought/sold buy/sell buys/sells bring/take
lend/borrow raised/lowered raise/lower raises/lowers reduced/increased reduce/increase reduces/increases
reducing/increasing expanded/reduced expand/shrink enhances/impairs enhance/impair enhanced/impaired
strengthen/weaken strengthened/weakened accelerate/slow accelerated/slowed added/removed add/remove
adds/removes attack/defend attacked/defended victory/defeat defeated/"lost to" winner/loser hired/fired
born/buried appointed/dismissed employed/unemployed present/absent visible/invisible sufficient/insufficient
adequate/inadequate efficient/inefficient effective/ineffective active/inactive formal/informal
official/unofficial complete/incomplete completely/partially fully/partially entirely/partly heavy/light
wide/narrow deep/shallow thick/thin bright/dark clean/dirty quiet/noisy loud/quiet sweet/sour soft/hard
rough/smooth sharp/dull senior/junior experienced/inexperienced famous/obscure worst/best lost/won
failed/succeeded fails/succeeds fail/succeed unable/able underestimated/overestimated former/current
previous/next exceeded/"fell short of" exceed/"fall short of" outperformed/underperformed below/above
fewer/more less/more lower/higher decline/growth declined/grew decrease/increase decreased/increased
decreases/increases fell/rose small/large shorter/longer later/earlier poor/good weak/strong
""".replace("\n", " ")

_NEAR = """
big/large large/big begin/start began/started begins/starts beginning/start buy/purchase bought/purchased
purchased/bought show/demonstrate shows/demonstrates showed/demonstrated shown/demonstrated
however/nevertheless approximately/about,roughly many/numerous numerous/many important/significant
significant/important quickly/rapidly rapidly/quickly difficult/hard famous/well-known also/additionally,"as
well" often/frequently frequently/often usually/typically typically/usually near/"close to" "such as"/like "in
order to"/to because/since "due to"/"because of" "as well as"/and used/employed,utilized uses/employs,utilizes
using/utilizing said/stated says/states told/informed create/make created/made creates/makes get/obtain
got/obtained need/require needs/requires needed/required give/provide gives/provides gave/provided
given/provided include/contain includes/contains mainly/primarily,mostly primarily/mainly mostly/mainly
main/primary primary/main several/"a number of" children/kids kids/children company/firm firm/company
film/movie movie/film movies/films films/movies car/automobile doctor/physician physician/doctor
physicians/doctors doctors/physicians job/position attempted/tried tried/attempted ends/finishes
constructed/built built/constructed located/situated situated/located born/"brought into the world"
lives/resides lived/resided allows/lets,permits allow/permit,let allowed/permitted almost/nearly nearly/almost
annual/yearly yearly/annual currently/presently,"at present" previously/formerly,earlier
subsequently/later,afterwards afterwards/later received/got obtain/get happened/occurred occurred/"took place"
occurs/happens "took place"/occurred established/founded,"set up" founded/established wrote/authored
authored/wrote "consists of"/comprises comprises/"consists of" "known as"/called called/named named/called
chosen/selected selected/chosen choose/select discovered/found error/mistake mistake/error wealthy/rich
rich/wealthy huge/enormous enormous/huge tiny/"very small" whilst/while while/whilst although/though
though/although within/inside upon/on toward/towards towards/toward among/amongst amongst/among until/till
sufficient/enough enough/sufficient additional/extra extra/additional commence/begin commenced/began
died/"passed away" spouse/partner reached/attained achieve/attain achieved/attained gain/obtain
gained/obtained keep/retain kept/retained maintain/keep "a lot of"/many "lots of"/many
various/different,diverse diverse/varied attractive/appealing delicious/tasty tasty/delicious
praised/commended ordered/requested requests/"asks for" asked/requested requested/"asked for"
explained/clarified suggests/indicates suggest/indicate suggested/indicated indicates/suggests reveals/shows
revealed/showed depicts/portrays portrays/depicts portrayed/depicted describe/depict features/includes
starring/featuring released/issued launched/introduced announced/"made public" revenue/income film's/movie's
nation/country country/nation countries/nations nations/countries area/region region/area regions/areas
areas/regions residents/inhabitants inhabitants/residents global/worldwide worldwide/global wealthiest/richest
biggest/largest largest/biggest initially/"at first" eventually/"in the end" finally/"at last"
immediately/"right away" recently/lately approx/approximately maybe/perhaps perhaps/maybe occasionally/"from
time to time" rarely/seldom seldom/rarely whole/entire spoke/talked concerning/regarding regarding/concerning
fix/repair repair/fix repaired/fixed method/approach approach/method methods/approaches approaches/methods
goal/aim aim/goal aims/seeks seeks/aims
""".replace("\n", " ")


def _read(text: str) -> dict[str, list[str]]:
    """Parse `key/value,value` items; double quotes hold phrases together."""
    out: dict[str, list[str]] = {}
    item, quoted = "", False
    for char in text + " ":
        if char == '"':
            quoted = not quoted
        elif char == " " and not quoted:
            if item:
                key, _, values = item.partition("/")
                out.setdefault(key, values.split(","))
            item = ""
        else:
            item += char
    return out


ANTONYMS = _read(_OPPOSITES)
# Words whose near-synonym fits one sense or one construction only (work in an area, give up, used to).
_MANY_SENSES = frozenset(
    words(
        "show shows shown given gave give gives provided keep kept goal aims asked ask requests requested "
        "ordered because lived lives resides resided significant important near global worldwide used need "
        "needs include includes contain features get obtain got obtained obtains received gain gained job "
        "position many several told area areas region regions released launched introduced announced reached "
        "attained beginning start firm whole entire though within big known called named portrays portrayed "
        "depicts depicted showed"
    )
)
_DROP = {
    "born",
    "stars",
    "said",
    "left",
    "right",
    "bring",
    "same",
    "also",
    "over",
    "up",
    "down",
    "light",
    "hard",
    "back",
    *_MANY_SENSES,
    *(
        "known as",
        "uses",
        "country",
        "countries",
        "doctor",
        "mistake",
        "error",
        "fix",
        "repair",
        "revealed",
        "reveals",
    ),
    "company",
}
SYNONYMS = {key: values for key, values in _read(_NEAR).items() if key not in _DROP}
for _word in ("left", "right", "bring", "born", "same", "up", "down", "over", "known", "support", "direct", "added"):
    ANTONYMS.pop(_word, None)

QUANTIFIERS: dict[str, tuple[list[str], list[str]]] = {
    "some": (["all", "no"], ["at least some"]),
    "many": (["few", "hardly any"], ["numerous"]),
    "most": (["all", "few"], ["the majority of"]),
    "several": (["no", "hardly any"], ["a number of"]),
    "few": (["many", "most"], ["not many"]),
    "all of": (["none of", "few of"], ["every one of"]),
    "every": (["no", "only one"], ["each"]),
    "both": (["neither"], []),
    "at least": (["at most", "exactly", "fewer than"], ["no fewer than"]),
    "at most": (["at least", "more than"], ["no more than"]),
    "more than": (["less than", "no more than"], []),
    "less than": (["more than", "at least"], []),
    "only": (["more than"], ["no more than"]),
    "may": (["must", "will certainly"], ["might", "could"]),
    "might": (["must", "will certainly"], ["may", "could"]),
    "could": (["certainly will"], []),
    "usually": (["always", "never"], ["generally", "typically"]),
    "sometimes": (["always", "never"], ["at times", "occasionally"]),
    "often": (["always", "rarely"], ["frequently"]),
    "rarely": (["often", "always"], ["seldom"]),
    "almost": (["more than"], ["nearly"]),
    "nearly": (["more than"], ["almost"]),
    "partly": (["entirely"], ["in part"]),
    "possibly": (["certainly"], ["perhaps"]),
    "allegedly": (["undoubtedly"], ["reportedly"]),
    "reportedly": (["undoubtedly"], ["allegedly"]),
    "probably": (["certainly"], ["likely"]),
    "planned to": (["managed to"], ["intended to"]),
    "plans to": (["has managed to"], ["intends to"]),
    "expected to": (["unlikely to"], ["anticipated to"]),
    "tried to": (["managed to", "refused to"], ["attempted to"]),
}
