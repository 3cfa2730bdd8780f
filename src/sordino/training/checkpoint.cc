#include "sordino/training/checkpoint.h"
