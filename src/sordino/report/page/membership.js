// Attacks on a model with records: `sordino audit membership --json`.
'use strict';

// An interval [lower, upper] of an estimate.
function intervalOf(estimate, form, at) {
  return [number(estimate.lower, form, `${at}.lower`), ' to ', number(estimate.upper, form, `${at}.upper`)];
}
function estimateCell(estimate, form, at) {
  return {value: estimate.value, nodes: [number(estimate.value, form, `${at}.value`), el('span', {class: 'interval'}, intervalOf(estimate, form, at))]};
}

// Every rate of an attack beside the limit of the claim at the same false positive rate.
function comparisonsOf(membership, at) {
  return membership.attacks.flatMap((attack, k) => attack.rates.flatMap((rate, r) => {
    const limit = membership.limits.findIndex(([place]) => place === rate.false);
    return limit < 0 ? [] : [{attack, rate, at: `${at}.attacks.${k}.rates.${r}`, limit: membership.limits[limit][1], limitAt: `${at}.limits.${limit}.1`}];
  }));
}

// Whether the claim may hold: an estimate above its limit says nothing while its interval reaches below the limit.
function membershipVerdict(membership, at) {
  const all = comparisonsOf(membership, at);
  if (all.length === 0) return {word: 'nothing claimed', isBad: false, text: ['Nothing is claimed that an attack could contradict.']};
  const above = all.filter((one) => one.rate.true.lower > one.limit);
  const excess = (one) => (above.length ? one.rate.true.lower : one.rate.true.value) / one.limit;
  const worst = all.reduce((a, b) => (excess(b) > excess(a) ? b : a));
  const said = [`"${worst.attack.name}" finds `, number(worst.rate.true.value, 'percent', `${worst.at}.true.value`), ' of the members at ',
    number(worst.rate.false, 'share', `${worst.at}.false`), ' false positives, the interval is ',
    intervalOf(worst.rate.true, 'percent', `${worst.at}.true`), ' (confidence ', number(membership.confidence, 'share', `${at}.confidence`),
    '), and the claim allows ', number(worst.limit, 'percentUp', worst.limitAt), '.'];
  if (above.length === 0) return {word: 'compatible with the claim', isBad: false, text: ['Compatible with the claim: no interval lies above its limit. The nearest: ', said]};
  return {word: 'above the claim', isBad: true, text: [`Above the claim: ${above.length} of ${all.length} intervals lie above their limits. The farthest: `, said,
    ' An interval is too high by chance at times; repeat with other records, and do not trust the claim if it stays above.']};
}

function membershipFact(membership, i) {
  return fact('Membership inference: ' + (membership.run || membership.name), membershipVerdict(membership, `memberships.${i}`).word,
    el('a', {href: '#membership-' + i}, 'The intervals'), ' are as private as the records.');
}

function membershipTable(membership, at) {
  const rates = membership.attacks.length ? membership.attacks[0].rates.map((rate) => rate.false) : [];
  const rows = membership.attacks.map((attack, k) => [attack.name, estimateCell(attack.area, 'plain', `${at}.attacks.${k}.area`),
    ...rates.map((_, r) => attack.rates[r] ? estimateCell(attack.rates[r].true, 'percent', `${at}.attacks.${k}.rates.${r}.true`) : '')]);
  if (membership.limits.length) {
    rows.push(['limit of the claim', '', ...rates.map((rate) => {
      const k = membership.limits.findIndex((limit) => limit[0] === rate);
      return k < 0 ? '' : cell(membership.limits[k][1], 'percentUp', `${at}.limits.${k}.1`);
    })]);
  }
  return dataTable('Attacks', ['attack', 'area', ...rates.map((rate) => `true at ${share(rate)} false`)], rows, {name: at});
}

function membershipPart(membership, i) {
  const at = `memberships.${i}`;
  const verdict = membershipVerdict(membership, at);
  return part('membership-' + i, 'Membership inference: ' + (membership.run || membership.name),
    el('p', {class: 'warning'}, 'Computed from the records without noise: this part of the page is as private as they are.'),
    el('p', {class: verdict.isBad ? 'warning verdict' : 'verdict'}, verdict.text),
    el('p', {}, 'How well an attacker who has the model tells ', number(membership.members, 'whole', `${at}.members`),
       ' records that it was trained on from ', number(membership.others, 'whole', `${at}.others`),
       ' that it was not', membership.shadows ? [', with ', number(membership.shadows, 'whole', `${at}.shadows`), ' shadow models'] : '',
       '. The area is 0.5 for a coin and 1 for who is always right; below an estimate stands its interval.'),
    membershipTable(membership, at),
    rocPanel('membership-' + i, 'How well members are told from others',
             membership.limit_curve.length ? 'The claim of the run allows no attack above its limit, but for chance.'
                                           : 'The run was trained without privacy: nothing limits an attack.',
             membership.attacks.map((attack) => [attack.name, attack.curve]), membership.limit_curve),
    membership.classes.length > 1 ? fold('classes-' + i, `Area of the attack "${membership.best}" by class`, false,
      dataTable('Areas by class', ['class', 'area'], membership.classes.map(([name, area], k) =>
        [name, cell(area, 'plain', `${at}.classes.${k}.1`)]), {name: `${at}-classes`})) : null);
}
