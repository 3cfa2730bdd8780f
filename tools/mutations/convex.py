"""Mutations of convex learning: tools/mutate convex."""
from mutation import Mutation

PROGRAM = "convex_test"

MUTATIONS = [
    Mutation("a replaced row moves the minimum once", "convex/internal/budget.cc",
             "return adjacency == Adjacency::kReplaceOne ? 2 : 1;",
             "return adjacency == Adjacency::kReplaceOne ? 1 : 1;",
             "OutputPlan.*"),
    Mutation("a Gaussian budget 2 % too large", "convex/internal/budget.cc",
             "std::log(left)) * (1 - 0x1p-30);", "std::log(left)) * 1.02;",
             "Methods.SpendTheirBudgetAndNoMore:GradientPerturbation.SpendsItsBudget"),
    Mutation("output noise 10 % too small", "convex/output.cc",
             "if (plan.steps == 0) return (distance + 2 * plan.gradient_norm_limit) / lambda * "
             "(1 + 0x1p-40);",
             "if (plan.steps == 0) return 0.9 * distance / lambda;",
             "OutputPlan.*"),
    Mutation("stopped descent is taken for its first step", "convex/output.cc",
             "return (distance * (1 - kept) + 2 * rounding) / lambda * (1 + 0x1p-40);",
             "return (0.01 * distance * (1 - kept) + 2 * rounding) / lambda;",
             "OutputPlan.*"),
    Mutation("proximal steps pull less than their noise is for", "convex/output.cc",
             "const double mu = static_cast<double>(plan.proximal_steps) * plan.lambda;",
             "const double mu = plan.lambda;",
             "ProximalSteps.*"),
    Mutation("a minimum is believed without its certificate", "convex/internal/minimum.cc",
             "  if (norm > limit) {\n    throw", "  if (norm < 0) {\n    throw",
             "Certificate.*"),
    Mutation("rounding is not in the certificate", "convex/internal/minimum.cc",
             "return (NormBound(point.gradient) + rounding + 0x1p-50 * sum) * (1 + 0x1p-50);",
             "return point.gradient.norm().item<double>() + 0 * (rounding + sum);",
             "Certificate.*"),
    Mutation("progress says how far the minimum is", "convex/internal/minimum.cc",
             "if (progress) progress(0);", "if (progress) progress(std::min(0.9, limit / norm));",
             "Certificate.ProgressSaysNothingAboutTheRows"),
    Mutation("the linear term is half of what it should be", "convex/objective.cc",
             "plan.sigma = *found;", "plan.sigma = 0.5 * *found;",
             "ObjectivePlan.*:FitAudit.*"),
    Mutation("steps of descent are not clipped", "convex/internal/gradient_sum.cc",
             "if (slope_clip < problem.bounds().slope) ClipSlopes(slopes, slope_clip);",
             "static_cast<void>(slope_clip), static_cast<void>(&ClipSlopes);",
             "GradientSensitivity.*"),
    Mutation("one step of many is charged", "convex/gradient.cc",
             "plan.event = Event::Repeat(StepEvent(plan, NoiseMultiplier(plan.multiplier)),\n"
             "                               static_cast<std::uint64_t>(plan.steps));",
             "plan.event = StepEvent(plan, NoiseMultiplier(plan.multiplier));",
             "GradientPerturbation.*:Methods.*"),
]
