import { stemmed } from "./fold.ts";

/**
 * Stems of common English words with their weight as evidence: 0 for a word in nearly every text, 1 for a rare word. The
 * weight does not depend on the collection. It falls with the logarithm of the share of texts (of a thousand characters)
 * that contain the word, and is close to 0 from a share of 0.35 on. The share is the larger of two: in film subtitles
 * (SUBTLEXus, 50 million words, assumed to be distributed at random), and in the manuals of three programs (the median, so
 * that no single subject makes a word common).
 */
const COMMON: readonly (readonly [weight: number, stems: string])[] = [
  [
    0.1,
    `
    back come exampl file get go good got http includ know look make man mean name realli right run sai see
    someth take talk tell thank thing think time type valu wai want well
    `,
  ],
  [
    0.25,
    `
    add anyth around ask awai believ better boi call case chang configur consol contain creat dai data defin
    differ document feel find first follow friend gener girl give god great happen help home instead keep
    kid kill last leav librari life littl live love mayb never new night noth number peopl project provid
    put refer request requir result said set sir sorri specifi still stop support sure system thought told
    try two version wait work write year
    `,
  ],
  [
    0.4,
    `
    actual ad addit ain allow alwai anoth applic avoid babi bad best big bring build busi came car care caus
    check code common compat compil concept config consid content cours current dad dead declar default
    depend detail doc done drink end enough error everybodi everyth excus execut exist export ey fail famili
    father featur field fine format found function given guess guid hand handl happi head hear heard hello
    hold hope hour hous idea ignor implement instanc io job kind knew ladi languag latest left line list
    listen long lot made main mani match matter md meet men metadata mind minut miss modul mom monei morn
    mother move multipl next nice note offic old open oper option org part path perform person place plai
    point possibl pretti problem question read readi real rememb remov return room rule saw school second
    section seem seen server show sit somebodi someon son sourc specif stai standard start string suppos
    target text three titl todai togeth tomorrow tonight took turn txt understand user valid variabl walk
    watch week went whole wife woman wonder word world worri wrong
    `,
  ],
  [
    0.55,
    `
    abl accept access across act afraid ago ahead almost alon along alreadi answer anybodi anymor anyon
    anywai api appli attempt automat avail base bash beat beauti bed behavior behind bet binari bit black
    blood bodi book bound break brother brought bui bye captain chanc children citi clear close collect
    command complet consist continu control cool cop copi count countri coupl cover cpu crazi custom cut
    daddi danc date daughter deal dear death design develop die dinner directli directori distribut docker
    doctor dog door dr dream drive drop easi eat empti enabl ensur entir equal everyon exactli expect
    explicitli express face fact fall far fight figur final finish fire five flag foo forget four free front
    full fun funni futur game gave glad goe gone group gun half hang hard hate heart high hit honei host hot
    html hurri hurt husband id import index inform insid integ integr interest intern issu kei kiss late
    later learn least level lib light limit lose lost ma manag manual memori messag met method modifi moment
    month movi murder music nobodi often order output outsid packag pai paramet parti particular pass
    perfect phone pick pictur plan polic power practic prefer present prevent print probabl process promis
    pull purpos python rang reason receiv recommend relat releas replac report repres resolut respons rest
    ride runtim save scare search send separ share shoot shot shut sick side sign similar similarli simpl
    sinc singl sister six size sleep sometim soon sound span speak src stand state storag store stori street
    structur stuff stupid summari syntax test therefor though throw till tool touch town tri troubl true
    trust truth unless updat war water wear web welcom white win wish women yaml yml young
    `,
  ],
  [
    0.7,
    `
    absolut accid action activ address advanc affect afternoon ag agent agre air al aliv alright altern amaz
    american amount angel anim annot anywher apart apolog appear appreci approach appropri arbitrari area
    argument arm armi arrest arriv art associ assum attack attent bag ball bank bar basic bear becom beer
    begin belong besid beyond birthdai blob block blow blue board boat bomb born boss bother bought box
    brain breath broke browser buck buddi bug built burn byte cach calm card carri cat catch caught cd
    certain certainli charact charg chief child choic choos christ christma class clean cloth club coffe
    cold colleg colonel combin commun compani compar complex concern congratul connect contact context
    convent convert cook core correct court crime cross cry curl cute danger dark darl decid definit describ
    desir destroi detect determin dev direct disabl discov discoveri discuss displai dollar download dress
    drug drunk dude due dynam earli earth easier edit effect eight element encod enjoi environ equival evalu
    evid exact except excit exclud exclus exit experi explain explicit explor extend extens extern extra
    failur fair fast fat fault favor fear feet felt fill film fish fit fix floor fly folk food fool forc
    forev forgiv forgot form gentlemen gift girlfriend glass global gold goodby grab graph ground grow
    guarante guard hair header hide histori honor hors hospit hotel human hundr ic identifi idiot imagin
    improv increas indic info initi input instal intend interact interfac introduc invalid invit involv item
    jesu join joke json judg jump kept kick king knock known label land larg laugh law lawyer layout lead
    leg legaci length less letter li lie lieuten link load locat lock log logic longer lord lower ls luck
    lucki lunch ly machin mad major mama map mark marker marriag master meant medic mention mess middl mile
    million mistak mode mouth nativ natur near necessari node none normal notic offer offici organ origin
    otherwis ought pack page paid pain paint paper parent park partner past patient pattern peac perhap
    persist piec pin plane pleasur plugin poor pop posit post potenti prepar presid previou prison privat
    produc program protect proud prove public publish push queri quick quiet race radio rai rais ran raw
    reach realiz recent record red reduc regular reject rel relationship relax relev reli remain repositori
    respect rich ring road rock roll root round safe scene scope scream screw seat secret secur select self
    sell sens sent seriou servic setup seven ship shoe shop short sing situat slow small smart smell smile
    smoke softwar solut somewher song sort soul special spend spot star static station steal step stick
    straight strang strategi stream strong studi style success suggest suit summer surpris swear sweet
    switch tabl taken tape teach team ten term terribl th third thousand ticket tire top total tough track
    train treat tree trip truck tutori tv typic uncl unit unix unlik upper upset url usual vector view visit
    voic wake wall warn wast weapon wed weird width window wit workspac wors worth written yesterdai yo york
    `,
  ],
  [
    0.85,
    `
    abil accord account adam adapt addition adjust admir admit advantag advic affair afford airport
    algorithm alli alongsid america ami analysi angri ann announc appar append appoint architectur arrai
    arrang artist asleep aspect asset assist assumpt attach attornei attract attribut aunt auth authent
    author ay backward band bath bathroom battl beach becam bedroom beg bell bigger biggest bind bird bite
    blame bleed bless blind blog bobbi bond bone boolean bore borrow bottl bottom boyfriend branch breakfast
    bridg bright broken brown bu bullet bunch buri bust butt cake calcul caller camera camp capabl captur
    career cargo cash celebr cell center chair channel char characterist charl charm chase cheat cheer chees
    chest chicago chick chicken chines chip chosen church cigarett claim click client clock closer cloud
    coach coat color comfort comment commit commonli comparison compon compos comput concret concurr condit
    confess conflict confus constant constraint consum contract conveni convers convinc cooper corner
    correctli correspond cost counter cousin crack crash cream creation credit crew crimin crowd cup damag
    dare debug decis deep defend defens deliv demon demonstr depart deploi deploy deriv descript deserv desk
    devil difficult dig director dirti disappear disappoint divorc doubl doubt drag draw driver dry dumb
    dump duplic duti dy ear earlier east ecosystem ed editor effici egg email embarrass emerg emit emot
    encount enemi enforc engag engin english enter enum enumer env eric escap especi event everywher evil
    excel expens experiment explan expos expr extract faith fake fals famou fan fantast faster favorit feed
    fell fella fellow filter finger flexibl flight float flower foot fortun forward freak fred freez french
    fresh fridai fulli ga gai gate gentleman german ghost gitlab googl gotten govern grace grade grand
    grandma grant greater greatest green guest guilti hall handler hardli hash hat health heat heaven heavi
    height held hero higher hill hint hire hole holi honest hook horribl huge hungri hunt ident immedi impli
    imposs impress inclus incompat incred increment inde independ individu inlin innoc insan insur intermedi
    interpret interview investig island iter jail jake jerk jess joei juri kelli killer kinda kitchen knee
    knife lab lack lai larri leader lee legal leo lesson lift linux lip ln local london lone loos loud low
    lowest luci luke maco madam magazin magic mail maintain market marshal martin meat mechan member meta
    migrat militari milk minim minor mission mister mix model modif mommi monkei monster moon motherfuck
    mount mountain ms multi mutat mysteri nake namespac nation neck nervou network nine nois north nose
    nowher numer nurs nut object obvious occur odd oil older omit opinion opportun opt optim outta overal
    overrid overview owner pair pal pant papa parallel pardon pari pars partial password peg perfectli phase
    phoeb photo physic pig pkg planet plant platform player plenti plu png pocket poison polit pool port
    pound prai pre prefix pregnant preserv press pressur pretend previous price princ princess procedur
    product profession professor progress punch quarter queen quickli rain rat readabl recogn recurs ref
    referenc refus region registri remind rent repeat represent reproduc resolv resourc respond restaur
    restrict reus review rid ridicul rip rise risk river rob roger rori rose rs ruin rush russian sad sake
    sampl san santa saturdai scenario schedul schema scheme score script sea semant senat sender sequenc
    sergeant seri serious serv settl sever sexual shake shame shell sheriff shirt shock shower shown sight
    signal signific silli simpler simpli skin skip sky slightli slip smaller sold soldier solv somehow south
    space speech speed spell spent spirit split spoke sport spread spring st stabl stack stage standalon
    statement statu stole stone str straightforward stranger strike strip stuck student subject subsequ
    succe successfulli suddenli suffer sun sundai surviv suspect sweetheart sweeti swim symbol sync talent
    task tast taught tea teacher tear ted teeth tend termin terrif thread threw throat ti tie tight tip todo
    token toward trade transfer transform transit trap travel trial trick twice ugli ui underscor unfortun
    uniqu univers upstair usabl usag usernam utf var vari variant varieti variou vega verbos verifi victim
    video virtual visual vote vs warm wash washington wave weak weekend weight west wet wheel wild william
    wind wine wing wire wood worst wound wrap wrote www yard yell zero
    `,
  ],
];

/** Words of expository prose on any subject, mainly of studies: weight `PROSE`, or less if the list above has less. */
const PROSE_WORDS = `
    achieve acquire actual adapt additional adequate adjust affect aid aim alternative amount analyse
    analysis analyze application applied apply appreciate approach appropriate approximate area article
    aspect assess assign associate assume attain attribute author automatic available average aware base
    based basic basis behavior benefit brief broad calculate capable category cause challenge characteristic
    characterize circumstance classify common compare comparison compile complete complex component
    comprehensive compute concept concern conclude condition conduct consequence consider consist constant
    constraint construct context contrast contribute control conventional correspond criteria current data
    decline decrease define definition degree demonstrate depend derive describe description design detail
    detect determine develop development dimension discuss discussion display distinct distribute
    distribution diverse document domain dominate effect effective efficiency efficient element emphasis
    enable ensure environment equivalent error establish estimate evaluate evaluation evidence evolve
    examine example exhibit expand experiment explain explicit explore express extend extent external
    extract factor feature field figure final finding focus following form formal format formula framework
    frequency frequent function fundamental general generate global goal group growth high hypothesis
    identical identify illustrate impact implement implementation implication imply importance important
    improve improvement include increase indicate individual influence information initial input insight
    instance institute integrate interact interaction interest internal interpret introduce investigate
    involve issue item journal kind knowledge known lack large latter lead level likely limit literature
    local logic long low main maintain major manage management many map mean measure measurement mechanism
    method methodology minimum model modeling modelling modify multiple nature necessary need network normal
    notion number objective observation observe obtain obvious occur operate operation optimal optimization
    optimize option order organization organize outcome outline output overall overview paper parallel
    parameter partial participate particular pattern perform performance period perspective phase phenomenon
    physical point positive possible potential practical practice predict preliminary presence present
    previous primary principal principle prior procedure process produce product property propose proportion
    provide publish purpose quality quantity question range rate ratio reason recent recommend reduce
    reduction reference region regular relate related relation relationship relative relevant reliable rely
    remain remove report represent representation require requirement research resource respond response
    restrict result reveal review role sample schedule scheme scope section select selection sequence series
    several shape short show significant similar simple single site situation size small software solution
    solve source space specific stage standard state statistic statistical strategy structure study subject
    subsequent substantial successful sufficient suggest suitable summary support survey system systematic
    table target task technique technology term test text theoretical theory topic total traditional
    transfer transform transition trend type typical unique unit update use user utilize valid variable
    variation variety vary version view visual volume work`;
const PROSE = 0.4;

/** Function words, weight 0: English, then German, French, Spanish, Italian, Dutch and Portuguese. */
const FUNCTION_WORDS = `
    a about above after again against all also although am an and any are aren as at be because been before
    being below between both but by can cannot could couldn did didn do does doesn doing don down during
    each either else etc even ever every few for from further had hadn has hasn have haven having he her
    here hers herself him himself his how however i if in into is isn it its itself just ll let like may me
    might mine more most mr mrs much must mustn my myself need neither no nor not now of off ok okay on once
    only or other others our ours ourselves out over own per please quite rather re s same shall shan she
    should shouldn so some such t than that the their theirs them themselves then there these they this
    those through thus to too under until up upon us ve very via was wasn we were weren what whatever when
    whenever where wherever whether which while who whoever whom whose why will with within without won
    would wouldn yes yet you your yours yourself yourselves d m o oh
    der das und ist nicht ein eine einen einem einer mit von zu den dem auf im des sich auch wie oder wird
    sind bei nach aus es le la les un une et est dans que qui pour sur au aux du ce cette sont el los las y
    en por con para del se lo su una como il gli di che non e per sono della nel het een van dat os um uma
    em do da na ao com nao`;

const common = new Map(
  COMMON.flatMap(([weight, stems]) => list(stems).map((stem): [string, number] => [stem, weight])),
);
const weights = new Map<string, number>([
  ...common,
  ...list(PROSE_WORDS).map((word): [string, number] => [
    stemmed(word),
    Math.min(PROSE, common.get(stemmed(word)) ?? 1),
  ]),
  ...list(FUNCTION_WORDS).map((word): [string, number] => [stemmed(word), 0]),
]);

/** Weight of a single letter or digit. */
const CHARACTER = 0.4;

/** Returns the weight of a term (see fold.ts) as evidence, [0, 1]. The same for every collection, so that scores are, too. Pure. */
export function termWeight(term: string): number {
  return weights.get(term) ?? (/^[a-z0-9]$/.test(term) ? CHARACTER : 1);
}

function list(words: string): string[] {
  return words.split(/\s+/).filter((word) => word !== "");
}
