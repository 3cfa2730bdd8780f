#include "sordino/cli/ledger_command.h"
