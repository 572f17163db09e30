import { expect, it } from "vitest";
import { languageOf, mainLanguage } from "../../src/lib/language.ts";

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

it("the main language is that of most texts that have a known one", () => {
  const { English = "", German = "" } = TEXTS;
  expect(mainLanguage([German, German, English, "x = 1"])).toBe("German");
  expect(mainLanguage([German, English])).toBeUndefined();
  expect(mainLanguage([German])).toBe("German");
  expect(mainLanguage([German, "x", "y", "z"])).toBeUndefined();
  expect(mainLanguage([])).toBeUndefined();
});
