import { expect, it } from "vitest";
import { certainLanguage, languageOf } from "../../src/lib/language.ts";

const TEXTS: Readonly<Record<string, string>> = {
  English:
    "The harbour master rings the bell twice when the fog comes in from the west, and the ferry waits at the pier until it is gone.",
  German:
    "Der Hafenmeister läutet die Glocke zweimal, wenn der Nebel von Westen kommt, und die Fähre wartet am Kai, bis er sich verzogen hat.",
  French:
    "Le maître du port sonne la cloche deux fois quand la brume vient de l'ouest, et le bac attend au quai que les bateaux soient partis.",
  Spanish:
    "El capitán del puerto toca la campana dos veces cuando la niebla viene del oeste, y el barco espera en el muelle hasta que se va.",
  Italian:
    "Il capitano del porto suona la campana due volte quando la nebbia viene da ovest, e il traghetto aspetta al molo che se ne vada via.",
  Portuguese:
    "O capitão do porto toca o sino duas vezes quando a névoa vem do oeste, e a balsa espera no cais até que ela não esteja mais em vista, com os barcos.",
  Dutch:
    "De havenmeester luidt de bel twee keer als de mist uit het westen komt, en de veerboot wacht aan de kade tot het weer helder is en niet eerder.",
  Polish:
    "Kapitan portu dzwoni dwa razy, gdy mgła nadchodzi z zachodu, a prom czeka przy nabrzeżu, bo nie jest to bezpieczne i nie wolno się na nim ruszać w tym czasie.",
  Swedish:
    "Hamnkaptenen ringer i klockan två gånger när dimman kommer från väster, och färjan väntar vid kajen till att det är klart och inte förr.",
  "Russian or another language in Cyrillic script":
    "Начальник порта звонит в колокол дважды, когда туман приходит с запада, и паром ждёт у причала.",
  Japanese: "霧が西から来ると港長は鐘を二度鳴らし、渡し船は桟橋で待ちます。kbsync を使います。",
  Chinese: "雾从西边来的时候，港务长敲两次钟，渡船在码头等候，直到雾散为止。请稍候再出发。",
  Korean: "안개가 서쪽에서 오면 항만장은 종을 두 번 울리고 나룻배는 부두에서 기다린다.",
  Greek: "Ο λιμενάρχης χτυπά την καμπάνα δύο φορές όταν έρχεται η ομίχλη από τα δυτικά.",
};

it.each(Object.entries(TEXTS))("the language of a text is recognised: %s", (language, text) => {
  expect(languageOf(text)).toBe(language);
});

it.each([
  ["nothing", ""],
  ["few words", "Der Hafenmeister läutet die Glocke"],
  ["numbers", "1 2 3 4 5 ".repeat(50)],
  [
    "code",
    "const x = f(a, b); return y.map(z => z + 1); import foo; export bar; let q = null; while true; ".repeat(
      9,
    ),
  ],
])("says nothing about %s", (_name, text) => {
  expect(languageOf(text)).toBeUndefined();
});

const LONG = (language: string): string => `${TEXTS[language]} `.repeat(3);

it.each<[string, string | undefined]>([
  ["English", "en"],
  ["German", "de"],
  ["French", "fr"],
  ["Spanish", "es"],
  ["Portuguese", "pt"],
  ["Japanese", "ja"],
  ["Chinese", "zh"],
  ["Korean", "ko"],
  ["Greek", "el"],
  ["Russian or another language in Cyrillic script", undefined],
])("the code of a long text is certain: %s", (language, code) => {
  expect(certainLanguage(LONG(language))).toBe(code);
});

it.each([
  [
    "it",
    "La marea è il movimento periodico del mare che si alza e si abbassa due volte al giorno, per effetto della luna e del sole. Nei porti le navi entrano con l'alta marea, quando l'acqua è più profonda, e non prima che sia passata la corrente, come si legge nelle tavole delle maree.",
  ],
  [
    "nl",
    "Het getij is de beweging van het water van de zee, die twee keer op een dag stijgt en daalt. In de haven wordt het schip geladen als het water hoog is, en niet voor de stroom voorbij is, zoals ook in de tafels staat die bij de meester van de haven te vinden zijn.",
  ],
])("prose has a certain language: %s", (code, text) => {
  expect(certainLanguage(text)).toBe(code);
});

it.each([
  ["a short text", TEXTS["English"] ?? ""],
  ["two languages", LONG("English") + LONG("German")],
  ["code", "const x = f(a, b); return y.map(z => z + 1); import foo; let q = null; while true; ".repeat(9)],
  [
    "Norwegian, which is near to Danish",
    "Havnesjefen ringer i klokken to ganger når tåken kommer fra vest, og fergen venter ved kaien til det er klart og ikke før. ".repeat(
      3,
    ),
  ],
  [
    "Catalan, which is not known",
    "El capità del port toca la campana dues vegades quan la boira ve de l'oest, i el vaixell espera al moll fins que se'n va. ".repeat(
      3,
    ),
  ],
  [
    "Galician, which is near to Portuguese",
    "O capitán do porto toca a campá dúas veces cando a néboa vén do oeste, e o barco agarda no peirao ata que marcha, e non máis. ".repeat(
      3,
    ),
  ],
  [
    "Slovak, which is near to Czech",
    "Prístavný kapitán zvoní na zvon dvakrát, keď prichádza hmla zo západu, a trajekt čaká pri móle, kým sa nerozplynie. ".repeat(
      3,
    ),
  ],
  [
    "Japanese with few kana",
    "東京都港湾局船舶航行安全規則第三条港湾区域内船舶速度制限適用除外事項一覧表の".repeat(3),
  ],
])("no language is certain for %s", (_name, text) => {
  expect(certainLanguage(text)).toBeUndefined();
});
