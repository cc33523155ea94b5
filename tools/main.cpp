// The shardmat program: the list of its subcommands.
#include "tools/cli/command.h"
#include "tools/cli/program.h"

namespace {

using namespace shardmat::tools;
constexpr AddCommand kCommands[] = {add_generate,    add_partition, add_convert,  add_info,    add_multiply,
                                    add_solve,       add_eigen,     add_pagerank, add_batch,   add_serve,
                                    add_client,      add_token,     add_worker,   add_predict, add_doctor,
                                    add_verify_file, add_bench,     add_compare,  add_help};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kCommands); }
