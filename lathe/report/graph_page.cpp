#include "lathe/report/graph_page.h"

#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

// The picture stands on white paper in both modes: its colours are chosen for it.
constexpr std::string_view kGraphStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --soft: #5c6670; --panel: #f5f6f8;
  --line: #d9dde2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --soft: #a0a8b0; --panel: #1f242a;
  --line: #39414a; } }
* { box-sizing: border-box; }
html, body { margin: 0; height: 100%; }
body { display: flex; flex-direction: column; background: var(--panel); color: var(--ink);
  font: 15px/1.4 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; padding: .5rem .75rem;
  border-bottom: 1px solid var(--line); }
h1 { font-size: 1rem; margin: 0 auto 0 0; overflow-wrap: anywhere; }
input, button { font: inherit; padding: .25rem .6rem; border: 1px solid var(--line);
  border-radius: .35rem; background: transparent; color: inherit; }
input { width: 14rem; max-width: 60vw; }
output { color: var(--soft); font-size: .88rem; min-width: 4.5rem; }
main { flex: 1; overflow: hidden; background: #ffffff; cursor: grab; touch-action: none; }
main.held { cursor: grabbing; }
main svg { display: block; transform-origin: 0 0; }
.faint g.node { opacity: .18; }
.faint g.node.found { opacity: 1; }
g.node.here polygon, g.node.here path, g.node.here ellipse { stroke: #d1495b; stroke-width: 3; }
)";

// `place` is where the picture's corner stands and how large it is; everything else follows.
constexpr std::string_view kGraphScript = R"(
const view = document.querySelector('main'), picture = view.querySelector('svg');
const field = document.querySelector('input'), count = document.querySelector('output');
const nodes = [...picture.querySelectorAll('g.node')];
const own = {width: picture.width.baseVal.value, height: picture.height.baseVal.value};
let place = {x: 0, y: 0, scale: 1}, found = [], at = -1;
const show = () => {
  picture.style.transform = `translate(${place.x}px, ${place.y}px) scale(${place.scale})`;
};
const fit = () => {
  const scale = Math.min(view.clientWidth / own.width, view.clientHeight / own.height, 1);
  place = {scale, x: (view.clientWidth - own.width * scale) / 2, y: 0};
  show();
};
const readable = () => {
  const scale = Math.min(1, Math.max(view.clientWidth / own.width, .55));
  place = {scale, x: (view.clientWidth - own.width * scale) / 2, y: 0};
  show();
};
const zoom = (factor, x = view.clientWidth / 2, y = view.clientHeight / 2) => {
  const scale = Math.min(8, Math.max(.02, place.scale * factor)), by = scale / place.scale;
  place = {scale, x: x - (x - place.x) * by, y: y - (y - place.y) * by};
  show();
};
const go = step => {
  nodes.forEach(node => node.classList.remove('here'));
  count.textContent = field.value ? `${found.length ? at + step + 1 : 0} of ${found.length}` : '';
  if (!found.length) return;
  at = (at + step + found.length) % found.length;
  count.textContent = `${at + 1} of ${found.length}`;
  found[at].classList.add('here');
  const box = found[at].getBoundingClientRect(), window = view.getBoundingClientRect();
  place.x += window.x + window.width / 2 - box.x - box.width / 2;
  place.y += window.y + window.height / 2 - box.y - box.height / 2;
  show();
};
const search = () => {
  const wanted = field.value.trim().toLowerCase();
  found = wanted ? nodes.filter(node => node.textContent.toLowerCase().includes(wanted)) : [];
  nodes.forEach(node => node.classList.toggle('found', found.includes(node)));
  picture.classList.toggle('faint', found.length > 0);
  at = 0;
  go(0);
};
field.addEventListener('input', search);
field.addEventListener('keydown', event => {
  if (event.key === 'Enter') go(event.shiftKey ? -1 : 1);
});
document.addEventListener('keydown', event => {
  if (event.target === field) return;
  if (event.key === '+') zoom(1.25);
  if (event.key === '-') zoom(.8);
  if (event.key === '0') fit();
  if (event.key === '1') zoom(1 / place.scale);
  if (event.key === '/') { field.focus(); event.preventDefault(); }
});
for (const button of document.querySelectorAll('button'))
  button.addEventListener('click', () => ({fit, in: () => zoom(1.25), out: () => zoom(.8),
    full: () => zoom(1 / place.scale)})[button.value]());
view.addEventListener('wheel', event => {
  event.preventDefault();
  const box = view.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY / 400), event.clientX - box.x, event.clientY - box.y);
}, {passive: false});
const held = new Map();
view.addEventListener('pointerdown', event => {
  held.set(event.pointerId, event);
  view.setPointerCapture(event.pointerId);
  view.classList.add('held');
});
view.addEventListener('pointermove', event => {
  const before = held.get(event.pointerId);
  if (!before) return;
  const others = [...held.values()].filter(each => each.pointerId !== event.pointerId);
  if (others.length) {  // two fingers
    const far = each => Math.hypot(each.clientX - others[0].clientX, each.clientY - others[0].clientY);
    const box = view.getBoundingClientRect();
    zoom(far(event) / Math.max(1, far(before)), (event.clientX + others[0].clientX) / 2 - box.x,
      (event.clientY + others[0].clientY) / 2 - box.y);
  } else {
    place.x += event.clientX - before.clientX;
    place.y += event.clientY - before.clientY;
    show();
  }
  held.set(event.pointerId, event);
});
for (const name of ['pointerup', 'pointercancel'])
  view.addEventListener(name, event => {
    held.delete(event.pointerId);
    if (!held.size) view.classList.remove('held');
  });
readable();
if (location.hash.length > 1) {
  field.value = decodeURIComponent(location.hash.slice(1));
  search();
}
)";

}  // namespace

std::string graph_page(std::string_view title, std::string_view svg) {
  const std::size_t start = svg.find("<svg");
  check(start != std::string_view::npos, "an <svg> element in an SVG document");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<header><h1>{0}</h1>\n"
      "<input type=\"search\" placeholder=\"search; Enter: next\" aria-label=\"search\">"
      "<output></output>\n"
      "<button value=\"out\" aria-label=\"smaller\">&minus;</button>"
      "<button value=\"in\" aria-label=\"larger\">+</button>"
      "<button value=\"full\">1:1</button><button value=\"fit\">whole</button>\n</header>\n"
      "<main>\n{2}</main>\n<script>{3}</script>\n</body>\n</html>\n",
      escape_markup(title), kGraphStyle, svg.substr(start), kGraphScript);
}

}  // namespace lathe::report
