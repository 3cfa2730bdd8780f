// Attacks on a model with records: `sordino audit membership --json`.
'use strict';

function membershipTable(membership, at) {
  const rates = membership.attacks.length ? membership.attacks[0].rates.map((rate) => rate.false) : [];
  const rows = membership.attacks.map((attack, k) => [attack.name,
    cell(attack.area.value, 'plain', `${at}.attacks.${k}.area.value`),
    cell(attack.area.lower, 'plain', `${at}.attacks.${k}.area.lower`),
    cell(attack.area.upper, 'plain', `${at}.attacks.${k}.area.upper`),
    ...rates.map((rate, r) => attack.rates[r]
      ? cell(attack.rates[r].true.value, 'percent', `${at}.attacks.${k}.rates.${r}.true.value`) : '')]);
  if (membership.limits.length) {
    rows.push(['limit of the claim', '', '', '', ...rates.map((rate) => {
      const k = membership.limits.findIndex((limit) => limit[0] === rate);
      return k < 0 ? '' : cell(membership.limits[k][1], 'percentUp', `${at}.limits.${k}.1`);
    })]);
  }
  return sortableTable(['attack', 'area', 'from', 'to',
                        ...rates.map((rate) => `true at ${plain(100 * rate)} % false`)], rows, at);
}

function membershipSection(membership, i) {
  const at = `memberships.${i}`;
  const nodes = [el('h2', {}, 'Membership inference: ' + (membership.run || membership.name)),
    el('p', {class: 'warning'}, 'Computed from the records without noise: this part of the page is as private as they are.'),
    el('p', {}, 'How well an attacker who has the model tells ', number(membership.members, 'whole', `${at}.members`),
       ' records that it was trained on from ', number(membership.others, 'whole', `${at}.others`),
       ' that it was not', membership.shadows ? [', with ', number(membership.shadows, 'whole', `${at}.shadows`), ' shadow models'] : '',
       '. The area is 0.5 for a coin and 1 for who is always right; "from" and "to" hold with confidence ',
       number(membership.confidence, 'percent', `${at}.confidence`), '.'),
    membershipTable(membership, at)];
  const curves = membership.attacks.map((attack, k) => ({
    name: attack.name, colour: k, bare: true, points: attack.curve.map(([x, y]) => ({x, y}))}))
    .filter((series) => series.points.length > 0);
  if (curves.length > 0) {
    const limit = membership.limit_curve.length ? [{name: 'limit of the claim', colour: 4, dashed: true, bare: true,
      points: membership.limit_curve.map(([x, y]) => ({x, y}))}] : [];
    nodes.push(chartPanel({name: 'membership-' + i, square: true, title: 'How well members are told from others',
      text: limit.length ? 'The claim of the run allows no attack above its limit, but for chance.'
                         : 'The run was trained without privacy: nothing limits an attack.',
      series: [...curves, ...limit, {name: 'pure chance', colour: 'x', dashed: true, bare: true, points: [{x: 0, y: 0}, {x: 1, y: 1}]}],
      x: {label: 'false positive rate', range: {min: 0, max: 1}, show: percent},
      y: {label: 'true positive rate', range: {min: 0, max: 1}, show: percent}}));
  }
  if (membership.classes.length > 1) {
    nodes.push(el('h3', {}, `Area of the attack "${membership.best}" by class`),
      sortableTable(['class', 'area'], membership.classes.map(([name, area], k) =>
        [name, cell(area, 'plain', `${at}.classes.${k}.1`)]), `${at}-classes`));
  }
  return nodes;
}
