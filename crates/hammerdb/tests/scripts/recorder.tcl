# Runs the script in the first argument with commands that only print themselves, one a line, as the test's host does.
foreach command {dbset diset giset print loadscript vuset vucreate vudestroy vurun buildschema checkschema deleteschema
    tcset tcstart tcstatus tcstop metset metstart metstatus metstop job jobs librarycheck runtimer waittocomplete} {
    proc $command {args} [string map [list NAME $command] {
        lappend ::recorded "NAME [join $args |]"
        if {"NAME" eq "vurun"} {return "Benchmark Run jobid=A1"}
        return ""
    }]
}
proc numberOfCPUs {} {return 6}
proc numberOfWHs {} {return 50}
proc after {args} {}
rename puts original_puts
proc puts {args} {
    if {[llength $args] == 1 || [llength $args] == 2 && [lindex $args 0] eq "-nonewline"} {
        set args [lrange $args end end]
        lappend ::recorded "puts: [lindex $args 0]"
    } else {original_puts {*}$args}
}
rename exit original_exit
proc exit {{status 0}} {lappend ::recorded "exit $status"; finish}
proc finish {} {
    foreach line $::recorded {original_puts [string map [list \n \\n] $line]}
    original_exit 0
}
set recorded {}
set argv [lassign $argv script]
if {[catch {source $script} message]} {lappend recorded "error: $message"}
finish
