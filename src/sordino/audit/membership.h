// Membership inference: how well an attacker distinguishes the records that a model was trained
// on from others.
//
// The confidence of a model in a record is log(p / (1 - p)) for the probability p of its class: the
// logits of the class less the log-sum-exp of the others. It falls with the loss, and is nearly
// normal over models that are trained alike. All attacks give larger scores to records that look
// like members.
//   loss         the confidence of the model
// With shadow models, each trained on a random half of all records that are asked about:
//   calibrated   the confidence less the mean of those shadows that did not see the record
//   lira         log-likelihood ratio of the normals of the shadows that saw it and of those that
//                did not (Carlini et al., arXiv 2112.03570, online)
//   lira-fixed   the same with one variance for all records
//   lira-offline the distance from the normal of those that did not see it alone
//   bavaria      between lira and lira-fixed: the variance of a record is inferred from its own
//                confidences and from that of all records (Bayesian variance inference). With the
//                conjugate prior of a variance that is worth kPriorShadows of them, the ratio is
//                that of two Student t distributions.
//   rmia         the share of other records z for which p(x) / P(x) >= 2 p(z) / P(z), with P the
//                mean of p over the shadows, in and out alike (Zarifzadeh et al., arXiv 2312.03262)
#ifndef SORDINO_AUDIT_MEMBERSHIP_H_
#define SORDINO_AUDIT_MEMBERSHIP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sordino {

// [records] of the logits [records, classes] and their classes, float64.
at::Tensor ClassConfidences(const at::Tensor& logits, const at::Tensor& classes);

// What shadow models say of the records: [shadows, records], float64, and whether each saw it,
// bool.
struct ShadowConfidences {
  at::Tensor confidences;
  at::Tensor saw;

  std::int64_t size() const { return confidences.defined() ? confidences.size(0) : 0; }
};

struct AttackScores {
  std::string attack;
  std::vector<double> scores;  // one for each record
};

// `confidences` [records] are those of the model under attack. `population` [records] marks those
// that rmia may compare with, the ones that are known not to be members. Attacks with shadows where
// every record was seen by at least two of them and not seen by at least two.
std::vector<AttackScores> MembershipScores(const at::Tensor& confidences,
                                           const ShadowConfidences& shadows,
                                           const at::Tensor& population);

}  // namespace sordino

#endif  // SORDINO_AUDIT_MEMBERSHIP_H_
