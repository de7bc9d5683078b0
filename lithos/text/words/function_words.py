"""Frequent function words of written languages, by which a text shows its language.

The words are a choice of the stop words of Snowball (snowballstem.org), which tantivy contains for most of
the languages (`Filter.stopword`). A test compares them. The words of all other languages are frequent
pronouns, articles, prepositions and conjunctions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

from lithos.text.words.analysis import FUNCTION_WORDS, fold

_STEMMED: Final = {
    "arabic": """
        من في على إلى عن مع هذا هذه التي الذي كان كانت ما لا أن إن قد كل بعد قبل بين عند لم ثم أو هو هي
    """,
    "danish": """
        og i jeg det at en den til er som på de med han af for ikke der var mig sig men et har om vi
        havde nu over da fra du ud dem op hvad hvor eller skal her alle vil blev kunne ind når være dog
        noget ville deres efter ned skulle denne dette under hun mange hendes også blive endnu af meget
        hvordan hvorfor hvis
    """,
    "dutch": """
        de en van ik te dat die in een hij het niet zijn is was op aan met als voor had er maar om hem
        dan zou of wat mijn men dit zo over ze zich bij ook tot je mij uit der daar haar naar heb
        hoe heeft hebben deze u want nog zal zij nu ge geen omdat iets worden toch waren veel meer doen
        moet kan onder wordt
    """,
    "finnish": """
        olla olen on ovat oli olivat ei ole minä sinä hän me te he tämä se nämä ne joka jotka mikä mitä
        että ja jos koska kuin mutta niin sekä sillä tai vaan vai vaikka kanssa mukaan yli kun myös
        tämän sen niiden
    """,
    "french": """
        au aux avec ce ces dans de des du elle en et eux il je la le les leur lui ma mais me même mes
        moi mon ne nos notre nous on ou par pas pour qu que qui sa se ses son sur ta te tes toi ton tu
        un une vos votre vous est sont était être ont cette comme plus
    """,
    "german": """
        aber alle als also am an auch auf aus bei bin bis da damit dann das dass daß dein dem den der
        des dich die dir doch du durch ein eine einem einen einer eines er es für hat hatte ich ihm ihn
        ihr im in ist jede kann kein können man mein mich mir mit muss nach nicht noch nur ob oder ohne
        sein sich sie sind so über um und uns unter vom von vor war warum was weil welche wenn werden
        wie wieder will wir wird wo zu zum zur
    """,
    "greek": """
        και το να του η της με που την από για τα είναι των σε ο οι στο θα τη στην τον τους δεν τις ένα
        μια ότι στη στα μας αλλά κι
    """,
    "hungarian": """
        a az és hogy nem is egy ez azt ezt meg csak már de van volt ha vagy mint még minden mert el fel
        lesz ami aki sem után között való pedig lehet kell olyan nagyon itt ott most én ő mi
    """,
    "italian": """
        a al alla agli ai anche che chi ci col come con cui da dal dalla degli dei del della delle di
        dove e è era essere gli ha hanno ho i il in io l la le lei lo loro ma mi mia mio ne nei nel
        nella noi non nostro o per perché più quale quando quella quello questa questo se si sono sua
        sul sulla suo tra tu tutti un una uno voi
    """,
    "norwegian": """
        og i jeg det at en et den til er som på de med han av ikke der så var meg seg men ett har om vi
        min hadde nå over da ved fra du ut dem oss opp hva hvor eller skal her alle vil ble kunne når
        være noe ville etter ned skulle denne dette under hun mange hennes også bli hvorfor hvordan noen
        mellom for
        ennå mye bare uten
    """,
    "portuguese": """
        de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ele das à seu
        sua ou quando muito nos já eu também só pelo pela até isso ela entre era depois sem mesmo aos
        seus quem nas me esse eles você essa num nem suas meu às minha numa está são ser foi
    """,
    "romanian": """
        și în de la cu pe care nu este din pentru mai o un ce sau prin după fi au fost dar ca să se sunt
        este acest această unui unei lui ei lor dacă când unde ale cel cea când până între fără doar
    """,
    "russian": """
        и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне
        было вот от меня еще нет о из ему теперь когда даже ну ли если уже или ни быть был него до вас
        вам ведь там потом себя ничего ей может они тут где есть надо для мы их чем была сам чтоб без
        будто это этот при чтобы после
    """,
    "spanish": """
        de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o
        este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos
        durante todos uno les ni contra otros ese eso ante ellos e esto mí antes algunos qué unos yo
        otro es son está ser tiene
    """,
    "swedish": """
        och det att i en jag hon som han på den med var sig för så till är men ett om hade de av icke
        mig du henne då sin nu har inte hans honom skulle hennes där min man ej vid kunde något från ut
        när efter upp vi dem vara vad över än dig kan sina här ha mot alla under någon eller allt mycket
        sedan denna detta blir varför
    """,
    "tamil": """
        ஒரு என்று மற்றும் இந்த இது என்ற கொண்டு என்பது பல ஆகும் அல்லது அவர் நான் உள்ள அந்த இவர் என முதல்
        என்ன இருந்து சில போன்ற வேண்டும் வந்து இதன் அது
    """,
    "turkish": """
        acaba ama ancak bu bir biz çok çünkü da daha de defa diye eğer en gibi hem hep hiç için ile ise
        kadar ki kim mi mu mı nasıl ne neden nerede niçin niye o olan olarak sonra siz şey şu tüm ve
        veya ya yani her
    """,
}
#: Languages without a stemmer that share their letters with a language that has one.
_OTHERS: Final = {
    "bulgarian": """
        и на да се за от не са че със по ще като до или но са беше това който има след през при тази
    """,
    "catalan": """
        de la el que i en a els un una les per amb no és del al es com més però o són aquest aquesta
        també molt dels ha seva sobre fins hi va ser des
    """,
    "croatian": """
        i je u se na da su za od s kao ne koji ili što iz po sam ali koje bi ako biti ima nije kako samo
        još
    """,
    "czech": """
        a se na je v že s z do to o i jako pro ale by jsem byl po si jsou ve od který jak nebo až která
        při pod podle není tak jen už co
    """,
    "indonesian": """
        yang dan di untuk dengan dari pada ini itu tidak dalam adalah akan ke atau juga oleh sebagai
        bisa karena ada telah kami mereka saya
    """,
    "latin": """
        et in est non ad ut cum quod qui sed ex quae si ab esse hoc sunt per enim etiam atque aut nec
        autem
    """,
    "persian": """
        و در به از که این را با است برای آن یک خود تا بر هم نیز می شود شد بود ها های
    """,
    "polish": """
        i w na z się nie do to jest że o jak po a dla od co ale za przez są oraz tak już czy być lub tym
        który jego ma może przy także
    """,
    "serbian": """
        и је у се на да су за од са као не који или што из по али које би ако ће није како само
    """,
    "ukrainian": """
        і в не що на я з та як а то все він до за у це його але по від ми вони для так є було якщо чи
        або під
    """,
    "urdu": """
        کے میں کی ہے اور سے کا کو اس کہ نے پر ہیں ایک یہ بھی تھا جو نہیں وہ کر تھے
    """,
    "vietnamese": """
        và của là có cho không được các trong với một những này đã để khi người từ cũng về như ở ra đến
        vào
    """,
}
#: Letters that only some languages use, each with the languages. Letters are evidence like function words.
_LETTERS: Final = {
    "ß": "german",
    "ä": "german finnish swedish",
    "ö": "german finnish swedish hungarian turkish",
    "ü": "german hungarian turkish",
    "őű": "hungarian",
    "ığ": "turkish",
    "ş": "turkish romanian",
    "șțţ": "romanian",
    "ă": "romanian vietnamese",
    "ñ¿¡": "spanish",
    "ãõ": "portuguese",
    "øæ": "danish norwegian",
    "å": "danish norwegian swedish",
    "œ": "french",
    "ù": "french italian vietnamese",
    "ò": "italian catalan vietnamese",
    "łąężś": "polish",
    "řěů": "czech",
    "čžš": "czech croatian",
    "đ": "croatian vietnamese",
    "ơưạảấếệộ": "vietnamese",
    "ыэё": "russian",
    "іїєґў": "ukrainian",
    "јљњћђ": "serbian",
    "ъ": "bulgarian russian",
    "ةإأى": "arabic",
    "پچگیک": "persian urdu",
    "ےٹںہ": "urdu",
}
#: Pattern of these letters.
MARKED: Final = re.compile(f"[{''.join(_LETTERS)}]")
#: Weight of a word of only one language, and of a word of very many languages.
WHOLE: Final = 100
_SHARED: Final = 20


def _weigh() -> dict[str, tuple[tuple[str, int], ...]]:
    """Return the languages of each word or letter, each with its weight."""
    found = defaultdict[str, list[str]](list)
    lists = {name: set(fold(text).split()) for name, text in (_STEMMED | _OTHERS).items()}
    for language, many in (lists | {"english": FUNCTION_WORDS}).items():
        for word in many:
            found[word].append(language)
    for letters, languages in _LETTERS.items():
        found |= dict.fromkeys(letters, languages.split())
    return {
        word: tuple((each, _SHARED + (WHOLE - _SHARED) // len(many)) for each in many)
        for word, many in found.items()
    }


#: Languages that have a stemmer.
STEMMED: Final = frozenset({*_STEMMED, "english"})
#: The languages in which a word is a function word, or that use a letter, each with a weight.
WEIGHTS: Final = _weigh()
LANGUAGES_OF: Final = {each: frozenset(dict(weights)) for each, weights in WEIGHTS.items()}
#: The function words of each language, folded.
BY_LANGUAGE: Final = {name: frozenset(fold(text).split()) for name, text in _STEMMED.items()}
