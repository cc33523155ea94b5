// How numbers are written. Spaces before units do not break.

const NB = "\u00a0";
const whole = new Intl.NumberFormat("en");

/** Three digits: 1.23, 12.3, 123, 1,234. */
function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 100 ? whole.format(Math.round(value)) : value.toFixed(size >= 10 ? 1 : 2);
}

const scaled = (value, units) => {
  const [factor, unit] = units.find(([factor]) => Math.abs(value) >= factor) ?? units.at(-1);
  return digits(value / factor) + NB + unit;
};

export const none = "–";
export const count = (value) => whole.format(value);
export const number = (value) => (value == null ? none : digits(value));
export const rate = (value) => (value == null ? none : digits(value) + "/s");
export const time = (seconds) =>
  seconds == null ? none
    : seconds >= 3600 ? `${Math.floor(seconds / 3600)}${NB}h ${Math.floor((seconds % 3600) / 60)}${NB}min`
      : seconds >= 60 ? `${Math.floor(seconds / 60)}${NB}min ${Math.floor(seconds % 60)}${NB}s`
        : scaled(seconds, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]);
export const size = (bytes) =>
  bytes == null ? none : bytes === 0 ? `0${NB}B` : scaled(bytes, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
export const bandwidth = (bytes) => (bytes == null ? none : size(bytes) + "/s");
export const percent = (share) => (share == null ? none : `${Math.round(100 * share)}${NB}%`);
/** Large numbers in words of three digits: 33.5 k, 1.2 M. */
export const about = (value) =>
  value == null ? none : value < 1e4 ? whole.format(value) : scaled(value, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]);
export const power = (value) =>
  value == null ? none : value === 0 || (value >= 0.01 && value < 1e4) ? digits(value) : value.toExponential(1).replace("e-", "e−").replace("e+", "e");
export const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");
/** A power of ten: 10⁻⁵. */
export const tens = (value) => (value == null ? none : "10" + String(Math.round(Math.log10(value))).replace(/[-0-9]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]));
/** Without zeros at the end of a fraction: 7.5 GB, 1 ms. */
export const brief = (text) => text.replace(/(\.\d*?)0+(?=\D)/, "$1").replace(/\.(?=\D)/, "");
