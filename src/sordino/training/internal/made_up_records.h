// Made-up records of the declared form, which a model is looked at with before it sees the data.
//
// They are the same in every process: a function of the types, shapes and classes that were
// declared, so what is found out about a model with them tells nothing about the data.
#ifndef SORDINO_TRAINING_INTERNAL_MADE_UP_RECORDS_H_
#define SORDINO_TRAINING_INTERNAL_MADE_UP_RECORDS_H_

#include "sordino/data/batch_loader.h"
#include "sordino/data/dataset.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/training/trainer.h"

namespace sordino::internal {

// A batch as a BatchLoader makes it. Of the data only types, shapes and the declaration are used.
// Every third of it has other values: as they come, with ties and padding, and at the ends of their
// range.
Batch MadeUpRecords(const Dataset& data, const LoaderOptions& loader);

// Of the form of a batch that nothing else is declared about (ProgramRecords): whole numbers are 0
// or 1, which are tokens, masks and labels of every model.
Batch MadeUpRecords(const Batch& form);

// The options of a trainer with made-up records for the sums of a private one: of the form, where
// it is not empty, or of the data.
TrainerOptions WithMadeUpRecords(TrainerOptions options, const Dataset& data, const Batch& form,
                                 bool is_private);

}  // namespace sordino::internal

#endif  // SORDINO_TRAINING_INTERNAL_MADE_UP_RECORDS_H_
