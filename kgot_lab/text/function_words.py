"""Function words, greetings and calendar words of several languages, which are no names although a sentence may
begin with them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]+")

# articles, pronouns, prepositions, conjunctions, auxiliaries, numerals, adverbs that open sentences, and greetings
FUNCTION_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "en": "p.s a an the this that these those he she it its they them their his her him we us our ours you your yours i me my "
        "mine who whom whose what which when where why how if unless because since although though while whereas as after "
        "before until till once and or but nor so yet for from with without within about above below under over between through "
        "during against across along among around at by in into near of off on onto out to toward towards up upon via per is "
        "are was were be been being am has have had do does did will would shall should can could may might must not no yes "
        "none nobody nothing neither either both each every all any some such same other another many much more most few fewer "
        "several enough one two three four five six seven eight nine ten eleven twelve first second third next last then there "
        "here now today tomorrow yesterday soon later again also too only just even still already always never often sometimes "
        "usually however therefore thus hence moreover furthermore meanwhile instead otherwise besides finally perhaps maybe "
        "indeed please thanks thank dear hello hi hey greetings regards sincerely cheers sorry ok okay note notes see let best "
        "kind warm present absent apologies agenda minutes re fwd cc subject ps everyone someone everything something "
        "nevertheless despite according unlike like than well good morning evening welcome congratulations",
        "de": "erst jahr jahre uhr der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner er sie es "
        "wir ihr ihre ihren ihrem sein seine seinen seinem mein meine unser unsere dein deine ich du mich mir uns euch ihn ihm "
        "ihnen wer wen wem was welche welcher welches wann wo warum wie wenn weil da damit dass ob obwohl während als nachdem "
        "bevor bis seit und oder aber sondern denn doch mit ohne von vom zu zum zur in im ins an am ans auf aus bei beim durch "
        "für gegen hinter neben über um unter vor zwischen nach ist sind war waren wird werden wurde wurden hat haben hatte "
        "hatten kann können muss müssen soll sollen darf nicht nein ja nichts niemand alle alles jede jeder jedes beide viele "
        "einige mehrere wenige andere dieser diese dieses diesen diesem jener jene zwei drei vier fünf sechs sieben acht neun "
        "zehn elf zwölf erste zweite dritte dann dort hier jetzt heute morgen gestern bald später auch nur noch schon immer nie "
        "oft manchmal jedoch deshalb daher trotzdem außerdem schließlich vielleicht bitte danke liebe lieber hallo guten grüße "
        "gruß herzliche freundliche freundlichen sehr geehrte geehrter anwesend entschuldigt betreff",
        "fr": "le la les l un une des du de d au aux ce cet cette ces il elle ils elles on nous vous je j tu me m se s son sa ses "
        "leur leurs mon ma mes notre nos votre vos ton ta tes qui que qu quoi dont où quand comment pourquoi si comme lorsque "
        "puisque car et ou mais donc or ni avec sans dans sur sous pour par vers chez entre depuis pendant avant après contre "
        "est sont était étaient a ont avait avaient sera ne n pas non oui rien personne tout tous toute toutes chaque plusieurs "
        "quelques autre autres deux trois quatre cinq six sept huit neuf dix premier première puis alors ici là maintenant "
        "aujourd demain hier bientôt aussi encore déjà toujours jamais souvent cependant toutefois enfin merci cher chère chers "
        "bonjour bonsoir salut cordialement voici voilà selon malgré présents",
        "es": "el la los las un una unos unas lo del al de y e o u pero sino ni él ella ellos ellas nosotros usted ustedes yo tú se "
        "su sus mi mis tu tus nuestro nuestra nuestros quien quién que qué cual cuando cuándo donde dónde como cómo porque si "
        "aunque mientras con sin en sobre bajo para por hacia desde hasta entre contra según durante tras es son era eran fue "
        "fueron ha han había hay no sí nada nadie todo todos toda todas cada varios algunos otro otra otros dos tres cuatro "
        "cinco seis siete ocho nueve diez este esta estos estas ese esa eso aquel primero luego entonces aquí allí ahora hoy "
        "mañana ayer pronto también aún ya siempre nunca embargo además finalmente gracias estimado estimada estimados querido "
        "querida hola saludos atentamente",
        "it": "il lo la i gli le l un uno una del dello della dei degli delle al allo alla ai agli alle dal dalla nel nella nei sul "
        "sulla di da in con su per tra fra e o ma né egli lui lei loro noi voi io tu si suo sua suoi sue mio mia nostro nostra "
        "chi che cosa quale quando dove come perché se mentre poiché è sono era erano fu ha hanno aveva non sì niente nessuno "
        "tutto tutti tutte ogni alcuni altri altro due tre quattro cinque sei sette otto nove dieci questo questa questi queste "
        "quello quella primo poi allora qui ora oggi domani ieri presto anche ancora già sempre mai spesso tuttavia inoltre "
        "infine grazie caro cara gentile ciao saluti buongiorno",
        "nl": "de het een en of maar want dus hij zij ze wij we jullie u ik jij je mij hem haar hun ons onze zijn mijn uw wie wat "
        "welke wanneer waar waarom hoe als omdat terwijl hoewel met zonder van naar in op aan bij door voor tegen over onder "
        "tussen na sinds tot uit om te is was waren wordt werd heeft hebben had kan moet niet nee ja niets niemand alle alles "
        "elke ieder veel enkele andere twee drie vier vijf zes zeven acht negen tien deze dit die dat eerste dan daar hier nu "
        "vandaag morgen gisteren later ook nog al altijd nooit vaak echter daarom bovendien dank beste geachte hallo groeten er",
        "pt": "o a os as um uma uns umas do da dos das no na nos nas ao aos à às de em por pelo pela com sem sobre para até desde "
        "entre e ou mas nem ele ela eles elas nós você vocês eu tu se seu sua seus suas meu minha nosso nossa quem que qual "
        "quando onde como porque embora enquanto é são era eram foi foram tem têm tinha há não sim nada ninguém tudo todos "
        "todas cada vários alguns outro outra dois duas três quatro cinco seis sete oito nove dez este esta estes estas esse "
        "essa isso aquele primeiro depois então aqui ali agora hoje amanhã ontem também ainda já sempre nunca porém além "
        "finalmente obrigado obrigada caro cara prezado olá saudações",
        "ru": "и а но или да не нет ни он она оно они мы вы я ты его её ее их наш наша наши ваш мой моя свой кто что какой какая "
        "который когда где куда почему как если потому хотя пока чтобы с со без в во на над под за для из от до по при через "
        "между после перед около у о об это этот эта эти тот та те все всё каждый другие другой два три четыре пять шесть семь "
        "восемь девять десять первый потом затем там здесь тут теперь сегодня завтра вчера скоро также тоже ещё еще уже всегда "
        "никогда часто однако поэтому наконец спасибо уважаемый уважаемая уважаемые дорогой дорогая привет здравствуйте был "
        "была было были есть будет",
        "pl": "i a ale lub czy nie tak on ona ono oni my wy ja ty jego jej ich nasz nasza mój kto co który która kiedy gdzie dlaczego "
        "jak jeśli ponieważ choć z ze bez w we na nad pod za dla od do po przy przez między przed u o to ten ta te wszystko "
        "każdy inny dwa trzy cztery pięć potem tam tu teraz dziś jutro wczoraj także też jeszcze już zawsze nigdy jednak "
        "dlatego dziękuję szanowny drogi cześć jest są był",
        "sv": "den det de en ett och eller men för att som är var har hade inte nej ja han hon vi ni jag du dem sin sitt sina vår när "
        "varför hur om eftersom medan med utan från till i på av vid genom mot över under mellan efter före alla varje andra "
        "två tre fyra fem denna detta dessa här där nu idag igår också redan alltid aldrig dock därför tack kära hej er der et "
        "og ikke til fra",
        "el": "ο η το οι τα του της των τον την τους τις ένας μια ένα και ή αλλά αν όταν που πως γιατί στο στη στην στον στα από με "
        "για σε δεν μη είναι ήταν θα να αυτός αυτή αυτό εγώ εσύ εμείς όλα όλοι εδώ εκεί τώρα σήμερα αύριο χθες όμως επίσης "
        "ευχαριστώ αγαπητέ αγαπητή γεια",
        "tr": "bir bu şu o ve veya ama ile için gibi çok daha en ne kim nasıl neden nerede ben sen biz siz onlar değil var yok evet "
        "hayır her bütün bugün yarın dün sonra önce şimdi ancak fakat ayrıca teşekkürler sayın sevgili merhaba de da ki",
        "cs": "a ale nebo i že když protože jak kde kdo co který ten ta to ty on ona ono my vy oni já v ve na do od z ze s se k o po "
        "pro při je jsou byl byla bylo ne ano dnes zítra včera také ještě už vždy však proto děkuji vážený vážená milý ahoj",
    }.items()
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in FUNCTION_WORDS.items():
    for _each in _words:
        _LANGUAGES_OF.setdefault(_each, []).append(_language)
_CALENDAR_WORDS = frozenset(
    "herbst frühling frühjahr sommer printemps été automne hiver verano otoño invierno primavera estate autunno inverno "
    "january february march april may june july august september october november december jan feb mar apr jun jul aug sep "
    "sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun "
    "spring summer autumn winter christmas easter januar jänner februar märz mai juni juli oktober dezember montag dienstag "
    "mittwoch donnerstag freitag samstag sonnabend sonntag janvier février mars avril juin juillet août septembre octobre "
    "novembre décembre lundi mardi mercredi jeudi vendredi samedi dimanche enero febrero marzo abril mayo junio julio "
    "agosto septiembre octubre noviembre diciembre lunes martes miércoles jueves viernes sábado gennaio febbraio aprile "
    "maggio giugno luglio settembre ottobre dicembre lunedì martedì mercoledì giovedì venerdì sabato domenica januari "
    "februari maart mei augustus maandag dinsdag woensdag donderdag vrijdag zaterdag zondag segunda terça quarta quinta "
    "sexta janeiro fevereiro março maio junho julho setembro outubro novembro dezembro января февраля марта апреля мая июня "
    "июля августа сентября октября ноября декабря понедельник вторник среда четверг пятница суббота воскресенье".split()
)


def is_calendar_word(word: str) -> bool:
    """Return whether a word is the name of a month, a day of the week or a season."""
    return word.casefold().strip(".,") in _CALENDAR_WORDS


def detect_language(texts: Iterable[str], default: str = "en") -> str:
    """Return the language of which most function words occur in some texts, or `default` without any."""
    counts: Counter[str] = Counter()
    for text in texts:
        for word in _WORD.findall(text.lower()):
            counts.update(_LANGUAGES_OF.get(word, ()))
    best = max(counts.values(), default=0)
    return (
        default
        if counts[default] == best
        else next(language for language, count in counts.items() if count == best)
    )
