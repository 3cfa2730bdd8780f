#include "sordino/base/known_meaning.h"

#include <algorithm>
#include <cctype>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// Words, separated by blanks: what people type, and what it is called here. Of several names the
// first one is meant that is known where it was typed.
struct Meaning {
  std::string_view typed;
  std::string_view names;
};

constexpr Meaning kMeanings[] = {
    // Budgets.
    {"e eps target-eps target-epsilon privacy-budget privacy-loss max-epsilon", "epsilon budget"},
    {"budget", "epsilon"},
    {"d target-delta failure-probability", "delta"},
    {"sigma noise-multiplier noise-scale noise-std", "noise"},
    {"mechanism noise-type", "noise-kind noise"},
    {"neighbours neighbors neighbouring-relation relation", "adjacency"},
    {"sample-rate sampling-rate sampling-probability q probability", "rate"},
    {"max-grad-norm max-norm grad-clip gradient-clip clip-norm clipping-norm norm-clip "
     "l2-norm-clip "
     "clipping-threshold clipping-bound",
     "clip row-bound"},
    // Data.
    {"input inputs dataset file train train-data training-data data-path path", "data"},
    {"test-data test-set test-file validation validation-data val eval eval-data holdout", "test"},
    {"n num-records num-samples num-examples n-samples samples examples dataset-size", "records"},
    {"num-classes n-classes", "classes"},
    {"label-names labels-names", "class-names"},
    {"target targets label y", "labels columns"},
    {"features column cols", "columns"},
    {"codebook declaration types dtypes", "schema columns"},
    {"sep separator", "delimiter"},
    {"na nan na-values null missing-values", "missing"},
    {"charset", "encoding"},
    {"size image-size img-size input-size resolution", "resize shape"},
    {"vocab words", "vocabulary"},
    {"max-len max-length seq-len sequence-length max-tokens", "length"},
    {"group-id user-id uid person", "user"},
    {"max-rows max-rows-per-user max-contributions contributions rows", "rows-per-user"},
    {"std stddev", "deviation"},
    // Models and their training.
    {"arch architecture net network classifier", "model"},
    {"learning-rate step-size eta", "lr step-size"},
    {"iterations iters iter num-steps n-steps max-steps max-iter max-iters updates", "steps"},
    {"num-epochs n-epochs max-epochs passes", "epochs"},
    {"batch-size batchsize bs lot lot-size minibatch mini-batch", "batch micro-batch"},
    {"optim optimiser algorithm solver", "optimizer method"},
    {"learning-rate-schedule scheduler lr-scheduler", "lr-schedule"},
    {"l2 reg regularization regularisation weight-penalty c alpha", "lambda weight-decay"},
    {"weights init init-weights pretrained-weights load", "pretrained"},
    {"hidden hidden-size hidden-dim", "width"},
    {"augment augmentation flips", "flip"},
    {"ema moving-average", "average-decay"},
    {"random-seed random-state", "seed insecure-seed"},
    {"gpu cuda use-cuda", "device"},
    {"workers num-workers jobs n-jobs num-threads", "threads processes"},
    {"world-size nproc ranks", "processes"},
    // Runs and their output.
    {"o output output-dir output-file out-dir outdir save save-to logdir", "out"},
    {"continue restart from-checkpoint", "resume"},
    {"plot figure chart draw", "picture report"},
    {"dryrun plan-only no-run", "dry-run"},
    {"yes overwrite", "force"},
    {"conf configuration settings", "config"},
    {"cutoff decision-threshold", "threshold"},
    {"proba probas probability predict-proba scores", "probabilities"},
    {"no-privacy nonprivate not-private public disable-dp", "non-private public-data"},
    {"compare non-private-baseline", "baseline"},
    {"checkpoint model-path model-dir", "run resume"},
    // Commands.
    {"learn training dp-sgd dpsgd finetune fine-tune", "train"},
    {"tuning hyperparameter hyperparameters hpo optuna search", "tune"},
    {"fitting regression logistic regress glm", "fit"},
    {"test evaluate eval infer inference apply score classify prediction predictions", "predict"},
    {"describe inspect check validate schema declare", "data"},
    {"query count sum mean histogram quantile stats statistics aggregate", "release"},
    {"accountant epsilon compose privacy spent", "account"},
    {"budget budgets charge charges", "ledger"},
    {"attack mia membership", "audit"},
    {"show view dashboard ui html page visualize", "report"},
    {"benchmark time speed", "bench"},
    {"man", "manual"},
    {"grid sweep", "experiment"},
    // Values: models and methods.
    {"logreg logit logistic-regression multinomial softmax softmax-regression", "logistic"},
    {"ols linear linear-regression ridge regression", "least-squares logistic"},
    {"svc linear-svm linearsvc hinge huber support-vector-machine", "svm"},
    {"nn dnn neural-network dense fully-connected feedforward", "mlp"},
    {"cnn conv convnet lenet convolutional", "cnn-mnist"},
    {"resnet wide-resnet wideresnet wrn", "wrn-16-4"},
    {"rnn gru recurrent", "lstm"},
    {"bert gpt attention", "transformer"},
    {"scatter scattering scatternet", "scatternet-linear"},
    {"linear-probe linear-probing", "mobilenet-linear"},
    {"gd sgd gradient-descent noisy-gradient noisy-sgd dp-sgd dpsgd", "gradient sgd"},
    {"output-perturbation", "output"},
    {"objective-perturbation", "objective"},
    {"amp approximate-minima approximate-minima-perturbation", "minima"},
    {"irls second-order newton-raphson", "newton"},
    {"ssp sufficient-statistics", "adassp"},
    {"momentum nesterov heavy-ball", "sgd"},
    // Values: clipping, sampling, noise.
    {"per-example per-sample example sample standard vanilla constant", "flat"},
    {"per-layer per-parameter layers", "layerwise"},
    {"auto auto-s auto-v autos normalised normalized normalise nsgd psac", "automatic"},
    {"quantile andrew", "adaptive"},
    {"ghost-clipping ghost-norm book-keeping bookkeeping bk", "ghost"},
    {"vmap functorch hooks materialised materialize materialized explicit", "materialise"},
    {"microbatch microbatches naive", "loop"},
    {"random-projection projection johnson-lindenstrauss sketch", "jl"},
    {"without-replacement fixed-size uniform", "fixed"},
    {"all full-batch gd", "full"},
    {"shuffle shuffled shuffling random-allocation balls-and-bins", "allocation"},
    {"bernoulli binomial subsampled", "poisson"},
    {"stream streaming sequential", "ordered"},
    {"gauss normal", "gaussian"},
    {"laplacian double-exponential", "laplace"},
    {"ftrl dp-ftrl binary-tree", "tree"},
    {"mf banded-mf matrix-factorization toeplitz", "banded"},
    {"independent iid", "none"},
    {"geometric two-sided-geometric", "discrete-laplace"},
    {"add remove add-or-remove add-or-remove-one unbounded", "add-remove"},
    {"replace substitute substitution swap change-one bounded", "replace-one"},
    {"zero zeroing", "zero-out"},
    {"fp32 float single", "float32"},
    {"bf16 fp16 float16 half mixed amp", "bfloat16"},
    // Values: data.
    {"utf8 unicode", "utf-8"},
    {"iso-8859-1 iso8859-1 latin1", "latin-1"},
    {"cp1252 cp-1252 ansi", "windows-1252"},
    {"jpg jpeg png folder image-folder imagefolder", "images"},
    {"numpy", "npy"},
    {"ubyte", "idx"},
    {"feather ipc", "arrow"},
    {"number int integer float double real continuous", "numeric"},
    {"category factor enum nominal ordinal discrete", "categorical"},
    {"bool binary logical flag", "boolean"},
    {"datetime timestamp day", "date"},
    {"class outcome", "label"},
    {"response", "target"},
    {"id patient customer", "user"},
    {"string free-text", "text"},
    {"average avg", "mean"},
    {"var", "variance"},
    {"hist frequencies", "histogram"},
    {"percentile", "quantile"},
};

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string_view WithoutDashes(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  return name;
}

std::string Plain(std::string_view given) {
  std::string plain(WithoutDashes(given));
  for (char& c : plain) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

}  // namespace

std::string NameByMeaning(std::string_view given, std::span<const std::string_view> known) {
  const std::string plain = Plain(given);
  const auto known_as = [&](std::string_view name) {
    const auto found = std::find_if(known.begin(), known.end(), [&](std::string_view candidate) {
      return WithoutDashes(candidate) == name;
    });
    return found == known.end() ? std::string() : std::string(*found);
  };
  if (const std::string same = known_as(plain); !same.empty()) return same;
  for (const Meaning& meaning : kMeanings) {
    const std::vector<std::string_view> typed = Words(meaning.typed);
    if (std::find(typed.begin(), typed.end(), plain) == typed.end()) continue;
    for (const std::string_view name : Words(meaning.names)) {
      if (std::string meant = known_as(name); !meant.empty()) return meant;
    }
  }
  return "";
}

std::string LikelyName(std::string_view given, std::span<const std::string_view> known) {
  std::string meant = NameByMeaning(given, known);
  return meant.empty() ? NearestName(given, known) : meant;
}

std::vector<std::string_view> NamesOfMeanings() {
  std::vector<std::string_view> names;
  for (const Meaning& meaning : kMeanings) {
    for (const std::string_view name : Words(meaning.names)) names.push_back(name);
  }
  return names;
}

}  // namespace sordino
