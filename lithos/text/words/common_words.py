"""Function words and other common words of eighteen languages, folded as in the full-text index.

Prompts use them (`ranking/prompt_words.py`). Most languages have the list of the package `stop-words`
2025.11.4 (https://github.com/Alir3z4/python-stop-words, BSD 3-Clause), with some words of everyday prompts.
`el`, `hi`, `th`, `vi` and `zh` are lists of our own. `vi` has syllables, and `th` and `zh` have parts of
texts without spaces. The English function words are in `text/words/analysis.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Words of any task or talk. In a small vault they are as rare as the words of a subject.
COMMON_WORDS: Final = """
add also always answer any ask back bad become begin best better big bring build call can cannot case change
check class clean close code come command complete continue convert copy correct create current data date
day default delete describe detail different do document easy edit end enough error even ever every
everything everywhere example exist expect explain fail fast feel few file find finish first fix follow
format found full function get give go good great handle happen hard help high idea implement import improve
include input issue item just keep kind know large last late learn leave left let level like line list
little load long look lot low main make many mean method might mind minute module month morning most move
much must name need never new next nice night none nothing now number object often old one only open option
order other output own page parameter part pass people person place plan please point possible problem
program project provide python put question quick quickly read real really reason remember remove rename
replace report result return right run same save say script second see seem select send sentence set several
short should show simple single size small some something sort start state step still stop string summary
support sure take talk tell test text thank thing think three time today together tomorrow tool top
translate true try turn two type understand unit until update use user value variable very view wait want
way week well whole word work world write wrong year yes yesterday
"""

#: Words by language.
FUNCTION_WORDS_OF: Final[Mapping[str, str]] = {
    "ar": """
        ا اثر اجل احد اخر اخري اذا اربعه اطار اعاده اعلنت اف اكثر اكد الا الاخيره الان الاول
        الاولي التي الثاني الثانيه الذاتي الذي الذين السابق السنه الف الماضي المقبل الوقت الي
        اليوم اما امام امس ان انه انها او اول اي ايار ايام ايضا اين ب باسم بان برس بسبب بشكل بعد
        بعض بن به بها بين تم ثلاث ثلاثه ثم جميع حاليا حتي حوالي حول حيث حين خلال خمسه دون ذلك
        زياره سنه سنوات شخصا شهر صباح صفر ضد ضمن عام عاما عدد عدم عده عشر عشره علي عليه عليها عن
        عند عندما غدا غير ف فان فضلك في فيه فيها قال قبل قد قوه كان كانت كل كلم كم كما كيف لا لدي
        لقاء لكن للامم لم لماذا لن له لها لوكاله لي ما مايو متي مره مساء مع مقابل مليار مليون من
        منذ منها نحو نفسه نهايه هذا هذه هل هناك هو هي و و6 واحد واضاف واضافت واكد وان واوضح وفي
        وقال وقالت وقد وقف وكان وكانت ولا ولم ومن وهو وهي يجب يكون يمكن يمكنك يوم
    """,
    "de": """
        ab aber alle allem allen aller alles als also alte alten am an ander andere anderem
        anderen anderer anderes anderm andern anders auch auf aus bei bin bis bist bitte da
        dadurch daher damit dann darum das dass dasselbe dauert dazu dein deine deinem deinen
        deiner deines dem demselben den denn denselben der derer derselbe derselben des deshalb
        desselben dessen dich die dies diese dieselbe dieselben diesem diesen dieser dieses dir
        doch dort drei du durch ein eine einem einen einer eines einig einige einigem einigen
        einiger einiges einmal er es etwas euch euer eure eurem euren eurer eures funf fur gegen
        geht gewesen gleiche hab habe haben hat hatte hatten hattest hattet hier hin hinter hinzu
        ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in indem ins ist ja jahr jahre
        jahres jede jedem jeden jeder jedes jene jenem jenen jener jenes jetzt kann kannst kein
        keine keinem keinen keiner keines konnen konnt konnte lange links mach mache machen man
        manche manchem manchen mancher manches mein meine meinem meinen meiner meines mich mir mit
        muss mussen musst musste nach nachdem nein neu neue neuen nicht nichts noch nun nur ob
        oder ohne rechts schreibe sehr seid sein seine seinem seinen seiner seines selbst sich sie
        sind so solche solchem solchen solcher solches soll sollen sollst sollt sollte sondern
        sonst soweit sowie tag tage uber um und uns unser unsere unserem unseren unserer unseres
        unter viel viele vier vom von vor wahrend wann war waren warst warum was weg weil weiter
        weitere welche welchem welchen welcher welches wenn wer werde werden werdet weshalb wie
        wieder wieso will wir wird wirst wo woher wohin wollen wollte wurde wurden zeige zu zum
        zur zusammen zwar zwei zwischen
    """,
    "el": """
        ακομα ακομη αλλα αλλεσ αλλη αλλο αλλοσ αν αναμεσα απο ασ αυτα αυτεσ αυτη αυτην αυτο αυτοι
        αυτον αυτοσ αυτου για γιατι δε δεν εγω εδω ειμαι ειμαστε ειναι εισαι ειχε εκει εμεισ ενα
        εναν ενασ ενοσ εξω επισησ εσεισ εσυ εχει εχεισ εχουμε εχουν εχω η ηδη ηταν θα ιδια ιδιο
        καθε και κανε κανει κανεισ κανω καποιοσ κατα κατι κατω λιγο λοιπον μασ με μεσα μετα μεταξυ
        μεχρι μη μην μια μιασ μονο μου μπορει μπορεισ μπορουμε μπορουν μπορω να ξανα ο οι ολα ολεσ
        ολη ολο ολοι ομωσ οποια οποιο οποιοσ οταν οτι παλι πανω παρα πιο ποια ποιεσ ποιο ποιοι
        ποιον ποιοσ πολυ ποσα ποσεσ ποση ποσο ποσοι ποσουσ ποτε που πρεπει πριν προσ πωσ σαν σασ
        σε σου στα στη στην στισ στο στον στουσ τα τη την τησ τι τιποτα τισ το τον του τουσ των
        τωρα χωρισ ωσ
    """,
    "es": """
        a acerca actualmente adelante ademas adonde aestarian afirmo agrego ahi ahora al algo
        algun alguna algunas alguno algunos allende alrededor ambos amen ampleamos anade anadio
        ano anos ante anterior antes apenas aproximadamente aquel aquellas aquellos aqui arriba
        aseguro asi atras aun aunque ayer bajo bastante bien buen buena buenas bueno buenos cabe
        cabo cada casi cerca cierta ciertas cierto ciertos cinco circa comento como con conmigo
        connosco conocer conseguimos conseguir considera considero consigo consigue consiguen
        consigues contigo contra convosco convusco cosas creo cual cuales cualquier cuando cuanta
        cuantas cuanto cuantos cuatro cuenta da dado dan dar de debe deben debido debo decir
        dejante dejo del delas demas dentro desde despues dia dias dice dicen dicho dieron
        diferente diferentes dijeron dijo dio donde dos durante e ejemplo el ella ellas ello ellos
        embargo empleais emplean emplear empleas empleo en encima encuentra entonces entre era
        erais eramos eran erar eras eres es esa esas escribe ese eso esos esta estaba estabais
        estabamos estaban estabas estad estada estadas estado estados estais estamos estan estando
        estar estara estaran estaras estare estareis estaremos estaria estariais estariamos
        estarian estarias estas este esteis estemos esten estes esto estos estoy estuve estuviera
        estuvierais estuvieramos estuvieran estuvieras estuvieron estuviese estuvieseis
        estuviesemos estuviesen estuvieses estuvimos estuviste estuvisteis estuvo ex excepto
        existe existen explico expreso favor fin fue fuera fuerais fueramos fueran fueras fueron
        fuerza fuese fueseis fuesemos fuesen fueses fui fuimos fuiste fuisteis gran grandes gueno
        ha habeis haber habia habiais habiamos habian habias habida habidas habido habidos
        habiendo habra habran habras habre habreis habremos habria habriais habriamos habrian
        habrias hace haceis hacemos hacen hacer hacerlo haces hacia haciendo hago han has hasta
        hay haya hayais hayamos hayan hayas haz he hecho hemo hemos hicieron hizo hora hoy hube
        hubiera hubierais hubieramos hubieran hubieras hubieron hubiese hubieseis hubiesemos
        hubiesen hubieses hubimos hubiste hubisteis hubo igual incluso indico informo intenta
        intentais intentamos intentan intentar intentas intento ir junto la lado largo las le les
        llego lleva llevar lo los luego lugar manera manifesto mas mayor me mediante mejor
        menciono menos mes meses mi mia miar mias mientras mio mios mis misma mismas mismo mismos
        modo modode momento mucha muchas mucho muchos muy na nada nadie ni ningun ninguna ningunas
        ninguno ningunos no nos nosotras nosotros nuestra nuestras nuestro nuestros nueva nuevas
        nuevo nuevos nunca o ocho os otra otras otro otros pa par para parece parte partir pasada
        pasado pero pesar poca pocas poco pocos podeis podemos poder podra podran podria podriais
        podriamos podrian podrias poner por porque posible primer primera primero primeros
        principalmente pro propia propias propio propios proximo proximos pudo pueda puede pueden
        puedes puedo pues que quedo queremos quien quienes quiere realizado realizar realizo
        respecto sabe sabeis sabemos saben saber sabes salvo se sea seais seamos sean seas segun
        segunda segundo seis senalo sentid sentida sentidas sentido sentidos sentir ser sera seran
        seras sere sereis seremos seria seriais seriamos serian serias si sido siempre siendo
        siente siete sigue siguiente sin sino sintiendo so sobre sois sola solamente solas solo
        solos somos son soy su sus suya suyas suyo suyos tal tambien tampoco tan tanto te tendra
        tendran tendras tendre tendreis tendremos tendria tendriais tendriamos tendrian tendrias
        tened teneis tenemos tener tenga tengais tengamos tengan tengas tengo tenia teniais
        teniamos tenian tenias tenida tenidas tenido tenidos teniendo tercera ti tiempo tiene
        tienen tienes toda todas todavia todo todos total trabaja trabajais trabajamos trabajan
        trabajar trabajas trabajo tras trata traves tres tu tus tuve tuviera tuvierais tuvieramos
        tuvieran tuvieras tuvieron tuviese tuvieseis tuviesemos tuviesen tuvieses tuvimos tuviste
        tuvisteis tuvo tuya tuyas tuyo tuyos ultima ultimar ultimas ultimo ultimos un una unas uno
        unos usa usais usamos usan usar usas uso usted va vais valor vamos van varias varios vaya
        veces ver verdad verdadera verdadero versus vez via viejo vosostras vosostros vosotras
        vosotros voy vuestra vuestras vuestro vuestros vusco y ya yo
    """,
    "fr": """
        a ai aie aient aies ait alors amp apres as attendu au aucun aucuns auec aura aurai
        auraient aurais aurait auras aurez auriez aurions aurons auront aussi autre autres aux
        avaient avais avait avant avec avez aviez avions avoir avons ayant ayante ayantes ayants
        ayez ayons bien bon c ca car ce ceci cela ces cet cette ceux chaque chez chose choses ci
        circa comme comment concernant contre d dans de debut dedans dehors dello depuis derriere
        des dessous dessus deux devant devers devoir devrait devrez devriez devrions devrons
        devront dire dixit dois doit donc dont dos droite du durant elle elles emmi en encore
        endeans entenant entre envers environ es essai est estre et etaient etais etait etant
        etante etantes etants etat ete etee etees etes etiez etions etre etreau eu eue eues eumes
        eurent eus eusse eussent eusses eussiez eussions eut eutes eux excepte faire fais faisez
        fait faites faut fois font force fors fumes furent fus fusse fussent fusses fussiez
        fussions fut futes grande haut hormis hors ici ie il ils im j je joignant jouxte jusque
        juste l la le les leur leurs lez lors lui luy m ma maintenant mais malgre me meme mes
        mesme mine moi moins mon mot moyennant n ne ni nom nomme nommee nommes nonobstant nos
        notre nous nouveau nouveaux on ont or ou outre par parce parmi parole pas passe pendant
        personne personnes peu peut piece plein plupart plus plusieurs point pour pourquoi
        pourquoy puis qu quand que quel quelle quelles quels qui quoy rez s sa sans sauf se selon
        sera serai seraient serais serait seras serez seriez serions serons seront ses seulement
        si sien soi soient sois soit sommes son sont sous soyez soyons sub suis suivant sujet sur
        t ta tandis te tellement tels tes toi ton touchant tous tout toutes tres trop tu un une v
        valeur vers versus via vn vne voici voie voient voila vois voit vont vos votre vous vs vu
        y
    """,
    "hi": """
        अगर अब अभी आप आपका आपकी आपके इन इस इसका इसकी इसके इसे उन उस उसका उसकी उसके उसे एक ओर और कब
        कम कर करता करती करते करना करने करें करो कहां का कि कितना कितनी कितने किया किस किसका किसने
        किसे की कुछ कृपया के कैसा कैसी कैसे को कौन कौनसा क्या क्यों क्योंकि गई गए गया चार चाहिए जब
        जाए जाओ जाता जाती जाते जाना जो ज्यादा तक तब तीन तुम तुम्हें तो था थी थे दिया दें देना दो न
        नहीं ना पर पहले पांच फिर बना बहुत बाकी बाद बारे बीच भी मत मुझे में मेरा मेरी मेरे मैं यह
        यहां यही या ये रहा रही रहे लगता लगती लगते लिए ले लेकिन लेना लो वह वहां वही वाला वाली वाले
        वे सकता सकती सकते सब सभी साथ से हम हमारा हमारी हमारे हमें हर ही हुआ हुई हुए है हैं हो होता
        होती होते
    """,
    "it": """
        a abbia abbiamo abbiano abbiate accanto ad adesso agl agli ai al alcun alcuno all alla
        alle allo allora altra altre altri altro anche ancora appo assai avemmo avendo avere
        avesse avessero avessi avessimo aveste avesti avete aveva avevamo avevano avevate avevi
        avevo avra avrai avranno avrebbe avrebbero avrei avremmo avremo avreste avresti avrete
        avro avuta avute avuti avuto avverso ben bene buono c ch che chi ci cinque cio co cogli
        coi col colla colle collo come comprare con consecutivi consecutivo contro cosa cosi cui d
        da dagl dagli dai dal dall dalla dalle dallo de degl degli dei del dell della delle dello
        dentro deve devo di dopo doppio dov dove due duo durante e ebbe ebbero ebbi eccetto ecco
        ed egli entro era erano eravamo eravate eri ero essendo essere et faccia facciamo facciano
        facciate faccio facemmo facendo facesse facessero facessi facessimo faceste facesti faceva
        facevamo facevano facevate facevi facevo fai fanno fara farai faranno fare farebbe
        farebbero farei faremmo faremo fareste faresti farete faro fece fecero feci fine fino
        fosse fossero fossi fossimo foste fosti fra fu fui fummo fuori furono gente gia giu gli
        gran grande ha hai hanno ho i il in indi indietro infra invece io l la lavoro le lei li lo
        loro lui lungo ma maggior maggiore mai malgrado me meco meglio mi mia mie miei mio molta
        molti molto ne negl negli nei nel nell nella nelle nello no noi nome non nonostante nostra
        nostre nostri nostro nove nuovi nuovo o ogn ogni oh oltre ora otto oue ove peggio pegli
        pei pel pella pello per perche pero persone piu pochi poco poi primo promesso puo pur qua
        qual qualche qualcun qualcuno quale qualmente quanta quante quanti quanto quarto quasi
        quattro quella quelle quelli quello questa queste questi questo qui quindi quinto rispetto
        s salvo sara sarai saranno sarebbe sarebbero sarei saremmo saremo sareste saresti sarete
        saro se seco secondo sei sembra sembrava sempre senza sette si sia siamo siano siate siete
        solo sono sopra soprattutto sotto sta stai stando stanno stara starai staranno stare
        starebbe starebbero starei staremmo staremo stareste staresti starete staro stati stato
        stava stavamo stavano stavate stavi stavo stemmo stesse stessero stessi stessimo stesso
        steste stesti stette stettero stetti stia stiamo stiano stiate sto su sua subito sue sugl
        sugli sui sul sull sulla sulle sullo suo suoi tal tanta tante tanti tanto te teco terzo ti
        tra tramite tranne tre triplo tu tua tue tuo tuoi tutta tutte tutti tutto ultimo un una
        uno va vai verso vi vn vna vno voi volte vostra vostre vostri vostro
    """,
    "nl": """
        aan af al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door
        dus een eens en er ge geen geweest haar had heb hebben heeft hem het hier hij hoe hun
        iemand iets ik in is ja je kan kon kunnen maar me meer men met mij mijn moet na naar niet
        niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen tot u uit uw van
        veel voor want waren was wat we wel werd wezen wie wij wil worden wordt zal ze zei zelf
        zich zij zijn zo zonder zou
    """,
    "pl": """
        4 4dy 4eli 4o a aby ach acz aczkolwiek aj albo ale alez ani az bardziej bardzo beda bedzie
        bez bo bowiem by byc byl byla byli bylo byly bym bynajmniej cala cali caly chce choc ci
        cie ciebie co cokolwiek coraz cos czasami czasem czemu czesto czy czyli daleko dla
        dlaczego dlatego do dobrze dokad dosc dr dua1 duzo dwa dwaj dwie dwoje dzis dzisiaj gdy
        gdyby gdyz gdzie gdziekolwiek gdzies go godz hab i ich ii iii ile im inna inne inny innych
        inz iv ix iz ja jak jakas jakby jaki jakichs jakie jakis jakiz jakkolwiek jako jakos je
        jea jea1 jeden jedna jednak jednakze jedno jednym jedynie jego jej jemu jesli jest jestem
        jeszcze jezeli jua1 juz kaa1 kazdy kiedy kierunku kilka kilku kims kto ktokolwiek ktora
        ktore ktorego ktorej ktory ktorych ktorym ktorzy ktos ku lat lecz li lub ma maja malo mam
        mamy mgr mi mial miedzy mimo mna mnie moga moi moim moj moja moje moze mozliwe mozna mu
        musi my na nad nam nami nas nasi nasz nasza nasze naszego naszych natomiast natychmiast
        nawet nia nic nich nie niech niego niej niemu nigdy nim nimi niz no nowe np nr o obok od
        ok okolo on ona one oni ono oraz oto owszem pan pana pani pl po pod podczas pomimo ponad
        poniewaz powinien powinna powinni powinno poza prawie prof przeciez przed przede przedtem
        przez przy raz razie roku rowniez sa sam sama sie skad soba sobie sposob swoje ta tak taka
        taki takich takie takze tam te tego tej tel temu ten teraz tez to toba tobie totez totoba
        trzeba tu tutaj twoi twoim twoj twoja twoje twym ty tych tylko tym tys tzw u ul vi vii
        viii vol w wam wami was wasi wasz wasza wasze we wedlug wie wiec wiecej wiele wielu
        wlasnie wsrod wszyscy wszystkich wszystkie wszystkim wszystko wtedy www wy xi xii xiii xiv
        xv z za zaden zadna zadne zadnych zapewne zas zawsze ze zeby zeznowu zl znow znowu zostal
    """,
    "pt": """
        a acerca afora agora algmas alguns ali ambos ante antes ao aos apontar apos aquela aquelas
        aquele aqueles aqui aquilo as ate atras bem bom cada caminho cara cima com como comprido
        conhecido connosco consoante contra corrente da das de debaixo dela delas dele deles
        dentro depois desde desligado deve devem devera diante direita diz dizer do dois dos
        durante e ela elas ele eles em enquanto entao entre era eram eramos escontra essa essas
        esse esses esta estado estamos estao estar estara estas estava estavam estavamos este
        esteja estejam estejamos estes esteve estive estivemos estiver estivera estiveram
        estiveramos estiverem estivermos estivesse estivessem estivessemos estou eu excepto exceto
        fara faz fazer fazia fez fim foi fomos for fora foram foramos forem formos fosse fossem
        fossemos fui ha haja hajam hajamos hao havemos havia hei horas houve houvemos houver
        houvera houveram houveramos houverao houverei houverem houveremos houveria houveriam
        houveriamos houvermos houvesse houvessem houvessemos in iniciar inicio inte ir ira isso
        ista iste isto ja lhe lhes ligado maioria maiorias mais malgrado mas me mediante menos
        mesmo meu meus minha minhas muito muitos na nao nas nem no nome nos nossa nossas nosso
        nossos novo num numa o onde os ou outro para parte pegar pela pelas pelo pelos per pera
        perante pode podera podia por porque povo pra promeiro qtinhamos qual qualquer quando que
        quem quieto saber salvante salvo sao se segundo seja sejam sejamos sem senao ser sera
        serao serei seremos seria seriam seriamos seu seus so sob sobre somente somos sou sua suas
        suso tal tambem te tem temos tempo tenha tenham tenhamos tenho tentar tentaram tente
        tentei ter tera terao terei teremos teria teriam teriamos teu teus teve tinha tinham
        tinhamos tipo tirante tive tivemos tiver tivera tiveram tiveramos tiverem tivermos tivesse
        tivessem tivessemos todos trabalhar trabalho tras tu tua tuas ultimo um uma umas uns usa
        usar valor veja ver verdade verdadeiro viaultimo voce voces vos
    """,
    "ro": """
        a abia acea aceasta aceea aceeasi aceia acel acela acelasi acelea acest acesta aceste
        acestea acestei acestia acestui acolo acum adica ai aia aici aiurea al ala alaturi ale alt
        alta altceva alte altfel alti altii altul am an ani anului anume apoi ar are as asa
        asemenea asta astazi astfel asupra atare atat atata atatea atatia ati atit atita atitea
        atitia atunci au avea avem avut azi b ba bine c ca cam cand capat care careia carora
        caruia cat cata cate cateva cati cativa catre ce cea ceea cei ceilalti cel cele celor ceva
        chiar ci cinci cind cine cineva cit cita cite citeva citi citiva conform cu cui cum cumva
        d da daca dar dat de deasupra decat deci decit degraba deja desi despre din dintr dintre
        doar doua dupa ea ei el ele era este eu exact f fa face fara fata fel fi fie foarte fost
        geaba h i ia iar iara ii il imi in inainte inapoi inca incat incit insa intr intre
        intrucat isi iti j k l la le li lor lui luna luni m ma mai mare mi mod mult multa multe
        multi n ne ni nici nicidecum niciodata nimeni nimic niste noi nostri nou noua nu numai o
        or ora ori orice oricum p pai pana parca pe pentru peste pina plus poate poti prea prin
        putini r rog s sa sai sale sau se si sint sintem spre sub sunt suntem sus t te ti toata
        toate tocmai tot toti totul totusi trebuie trei tu tuturor u ul ului un una unde unei
        unele uneori unii unor unui unul v va voi vom vor vreo vreun zi ziua
    """,
    "ru": """
        а алло без близко более больше будем будет будете будешь будто буду будут будь бы бывает
        бывь был была были было быть в важная важное важные важныи вам вами вас ваш ваша ваше ваши
        вверх вдали вдруг ведь везде весь вниз внизу во вокруг вон восемнадцатыи восемнадцать
        восемь восьмои вот впрочем времени время все всегда всего всем всеми всему всех всею всю
        всюду вся второи вы г где говорил говорит год года году да давно даже далеко дальше даром
        два двадцатыи двадцать две двенадцатыи двенадцать двух девятнадцатыи девятнадцать девятыи
        девять деиствительно дел день десятыи десять для дня до довольно долго должно другая
        другие других друго другое другои е его ее еи ему если есть еще ею ж же жизнь за занят
        занята занято заняты затем зато зачем здесь значит и из или им именно иметь ими имя иногда
        их к каждая каждое каждые каждыи кажется как какая какие какое какои кем когда кого ком
        кому конечно которая которого которои которые которыи которых кроме кругом кто куда лет ли
        лишь лучше люди м мало между меля менее меньше меня миллионов мимо мира мне много
        многочисленная многочисленное многочисленные многочисленныи мнои мною мог могут мое мож
        может можешь можно можхо мои мор мочь моя мы на наверху над надо назад наиболее наконец
        нам нами напиши нас начала наш наша наше наши не него недавно недалеко нее неи нельзя нем
        немного нему непрерывно нередко несколько нет нею ни нибудь ниже низко никогда никуда ними
        них ничего но новую новыи ну нужно нх о об оба обычно один одиннадцатыи одиннадцать
        однажды однако одного однои около он она они оно опять особенно от отовсюду отсюда очень
        первыи перед по под пожалуиста позже пока пор пора после посреди потом потому почему почти
        прекрасно при про просто против процентов пятнадцатыи пятнадцать пятыи пять раз разве рано
        раньше рядом с сам сама сами самим самими самих само самого самои самом самому саму свое
        своего своеи свои своих свою сделаи сеаои себе себя сегодня седьмои сеичас семнадцатыи
        семнадцать семь сих сказал сказала сказать сколько слишком сначала снова со собои собою
        совсем спасибо стал суть т та так такая также такие такое такои там твое твои твоя те тебе
        тебя тем теми теперь тех то тобои тобою тогда того тоже только том тому тот тою третии три
        тринадцатыи тринадцать ту туда тут ты тысяч у уж уже уметь хорошо хотеть хоть хотя хочешь
        часто чаще чего человек чем чему через четвертыи четыре четырнадцатыи четырнадцать что
        чтоб чтобы чуть шестнадцатыи шестнадцать шестои шесть эта эти этим этими этих это этого
        этои этом этому этот эту я
    """,
    "sv": """
        aderton adertonde adjo aldrig alla allas allt alltid alltsa an andra andras annan annat
        annu ar artonde artonn at atminstone att atta attio attionde attonde av aven bada badas
        bakom bara bast battre behova behovas behovde behovt beslut beslutat beslutit bland blev
        bli blir blivit bort borta bra da dag dagar dagarna dagen dar darfor de del delen dem den
        denna deras dess dessa det detta dig din dina dit ditt dock du efter eftersom ej elfte
        eller elva en enkel enkelt enkla enligt er era ert ett ettusen fa fanns far fatt fem femte
        femtio femtionde femton femtonde fick fin finnas finns fjarde fjorton fjortonde fler flera
        flesta foljande for fore forlat forra forsta fram framfor fran fyra fyrtio fyrtionde ga
        galla galler gallt gar garna gatt genast genom gick gjorde gjort god goda godare godast
        gor gora gott ha hade haft han hans har heller hellre helst helt henne hennes hit hog
        hoger hogre hogst hon honom hundra hundraen hundraett hur i ibland icke idag igar igen
        imorgon in infor inga ingen ingenting inget innan inne inom inte inuti ja jag jamfort ju
        kan kanske knappast kom komma kommer kommit kr kunde kunna kunnat kvar lange langre
        langsam langsammare langsammast langsamt langst langt latt lattare lattast legat ligga
        ligger lika likstalld likstallda lilla lite liten litet man manga maste med mellan men mer
        mera mest mig min mina mindre minst mitt mittemot mojlig mojligen mojligt mojligtvis mot
        mycket nagon nagonting nagot nagra nar nasta ned nederst nedersta nedre nej ner ni nio
        nionde nittio nittionde nitton nittonde nodvandig nodvandiga nodvandigt nodvandigtvis nog
        noll nr nu nummer och ocksa ofta oftast olika olikt om oss over overmorgon overst ovre pa
        rakt ratt redan sa sadan sadana sadant sade saga sager sagt samma samre samst sedan senare
        senast sent sex sextio sextionde sexton sextonde sig sin sina sist sista siste sitt sitta
        sjalv sjatte sju sjunde sjuttio sjuttionde sjutton sjuttonde ska skall skulle slutligen
        sma smatt snart som stor stora storre storst stort tack tidig tidigare tidigast tidigt
        till tills tillsammans tio tionde tjugo tjugoen tjugoett tjugonde tjugotre tjugotva tjungo
        tolfte tolv tre tredje trettio trettionde tretton trettonde tva tvahundra under upp ur
        ursakt ut utan utanfor ute vad vanster vanstra var vara varfor varifran varit varje varken
        varre vars varsagod vart vem vems verkligen vi vid vidare viktig viktigare viktigast
        viktigt vilka vilkas vilken vilket vill
    """,
    "th": """
        กว่า กัน กับ การ กี่ ก็ ก่อน กําลัง ขอ ของ ขึ้น ข้อ ข้าง คน ครั้ง ควร ความ คือ คุณ จะ จาก
        จึง ฉัน ช่วย ดี ดู ด้วย ตอน ตอนนี้ ตัว ตาม ต่อ ต่าง ต้อง ถึง ถูก ถ้า ทั้ง ทั้งหมด ที ที่
        ทุก ทํา ทําไม นั่น นั้น นาน นี่ นี้ น้อย บน ปี ผม มัน มั้ย มา มาก มี ยัง ยังไง ระหว่าง ลง
        ละ วัน ว่า สอง สาม สิบ สี่ ส่วน สําหรับ หนึ่ง หน่อย หรือ หลัง หลังจาก ห้า อยู่ อย่างไร ออก
        อะไร อัน อีก อื่น เกี่ยวกับ เก่า เขา เข้า เคย เดียวกัน เดือน เท่าไร เท่าไหร่ เป็น เพราะ
        เพื่อ เมื่อ เรา เวลา แต่ แบบ และ แล้ว โดย ใคร ใช้ ใต้ ใน ใบ ใหม่ ให้ ได้ ไป ไม่ ไว้ ไหน
        ไหม ๆ
    """,
    "tr": """
        acaba altmyth alty ama ay bana bazy belki ben benden beni benim bes beth bin bir biri
        birkac birkez birthey birtheyi biz bizden bizi bizim bu buna bunda bundan bunu bunun butun
        cok cunku da daha dahi de defa diye doksan dokuz dort elli en eski gibi gun hakkinda hangi
        hem hep hepsi her hic icin iki ile insermi ise kac kadar katrilyon kez ki kim kimden kime
        kimi kyrk lutfen mi milyar milyon misin mu my nasil nasyl ne neden nerde nerede nereye
        nicin niye olmali on ona ondan onlar onlardan onlari onlaryn onu otuz sanki sekiz seksen
        sen senden seni senin siz sizden sizi sizin su they theyden theyi theyler thu thuna thunda
        thundan thunu trilyon tum uc ve veya ya yani yap yaz yedi yeni yetmith yil yilin yirmi yuz
        zaman
    """,
    "uk": """
        a або адже аж але ало б багато без безперервно близько був буває буде будемо будете будеш
        буду будуть будь була були було бути більш більше в важлива важливе важливии важливі вам
        вами вас ваш ваша ваше ваші вгору вдалині весь вже ви вміти вниз внизу вона вони воно
        восьмии все всею всього всьому всю вся всім всіх втім від відсотків він вісім
        вісімнадцятии вісімнадцять г геть говорив давно далеко далі даром два двадцятии двадцять
        дванадцятии дванадцять двох дві де дев день десятии десять для до добре довго досить
        другии друго дуже дякую діисно е ж життя з за завжди зазвичаи заинята заинятии заинято
        заиняті занадто зараз зате звичаино звідси звідусіль здається значить знову зовсім зі иого
        иому каже какая ким кого кожен кожна кожне кожні коли кому краще кругом крім куди кілька
        ласка ледве лише люди людина м маиже мало мати мене менше мені ми миру мною могти мож може
        можна можуть моя моє моі міг між міи мільионів на навколо навіть навіщо нагорі над назад
        наибільш нам нами нарешті нас наш наша наше наші не небудь недалеко немає нерідко
        нещодавно нею неі нижче низько ними них ну нх нього ні ніби ніж ніи ніколи нікуди нічого
        обидва один одинадцятии одинадцять однак одного однієі особливо ось п перед першии по
        повинно поки пора поруч посеред потрібно потім початку прекрасно при про просто проти під
        пізніше пір після раз разу рано раніше раптом року років році рік сам сама саме самим
        самими самих самого самому саму самі саміи свого свою своє своєі своі своіх себе сих
        сказав сказала сказати скрізь скільки собою собі спасибі спочатку справ став суть сьогодні
        сьомии сім сімнадцятии сімнадцять т та так така таке такии також такі там твоя твоє твіи
        тебе теж тепер ти тим тими тисяч тих то тобою тобі того тоді тои тому тою треба третіи три
        тринадцятии тринадцять трохи ту туди тут ті тільки у усюди усіма хотіти хоч хоча хочеш хто
        хіба це цеи цим цими цих цього цьому цю ця ці цієі час часто частіше часу через четвертии
        чи численна численне численнии численні чого чому чотири чотирнадцятии чотирнадцять чудово
        шостии шістнадцятии шістнадцять шість ще що щоб я як яка якии яких якого якоі якщо які
        ятии ятнадцятии ятнадцять ять є і іи ім іноді інша інше іншии інших інші іх іі
    """,
    "vi": """
        ai anh ba ban bang bao ben bi boi bon ca cac cai can chi cho chua chung co con cu cua cung
        da dang dau day de den deu di dieu do du duoc em gi hai hay het hoac hon khac khi khong
        kia la lai lam lan len luc ma moi mot muoi nam nao nay nen neu nhat nhau nhe nhieu nhu
        nhung nua o phai qua ra rang rat roi sao sau se so su ta tai tat thang thanh the them theo
        thi toi tren trong truoc tu tung va van vao vay ve vi viec voi xem
    """,
    "zh": """
        一 一下 一个 一次 三 上 上一次 下 不 与 两 个 中 为 为什么 之前 之后 之间
        也 了 什么 从 他 以 以前 以后 们 会 但 但是 何时 你 做 关于 其他 再 写
        几 到 前 十 去 又 及 可以 号 同样 后 向 吗 吧 呢 和 哪 哪个 哪些 哪里
        啊 因为 在 多 多久 多大 多少 多长 多高 天 她 好 如果 它 对 就 已经 年
        应该 很 怎么 怎么样 怎样 想 我 或 所以 所有 把 新 日 旧 时候 时间 是 最
        月 有 来 每 每个 没有 点 然后 现在 用 由 的 看 给 能 被 要 让 讲 说 请
        谁 还 这 那 都 里
    """,
}
