// No core dumps: the memory of a process that reads private records is private too.
#ifndef SORDINO_BASE_CORE_DUMP_H_
#define SORDINO_BASE_CORE_DUMP_H_

namespace sordino {

// A crash of this process leaves no core file and starts no program that collects one, and other
// processes of the same user cannot read its memory or attach to it. A program calls this when it
// starts; children inherit the limit, and a program that replaces this one calls it again.
void DisableCoreDumps();

}  // namespace sordino

#endif  // SORDINO_BASE_CORE_DUMP_H_
