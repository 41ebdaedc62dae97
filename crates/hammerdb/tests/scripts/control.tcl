# Procedures, errors, loops that end early, and conditions of every form.
proc greet {who {greeting Hello} args} {
    if {[llength $args]} { return "$greeting $who and [join $args {, }]" }
    return "$greeting $who"
}
puts [greet world]; puts [greet world Bye]; puts [greet world Bye one "two three"]
proc count {} { global total; incr total; return $total }
set total 5
count; puts [count]
set i 0
while {1} { incr i; if {$i == 2} continue; if {$i > 4} break; puts "turn $i" }
foreach {a b} {1 2 3 4 5} { puts "$a-$b" }
foreach a {1 2} b {x y} { puts $a$b }
if {[catch {error "went wrong"} message]} { puts "caught: $message" }
if {[catch {greet} message]} { puts "caught another" }
puts [catch {return early} value]; puts $value
switch -glob -- abc { a* - b* { puts first } default { puts other } }
switch xyz { a { puts a } default { puts fallback } }
if {[string tolower [string trim "  TRUE "]] eq "true"} then { puts yes } else { puts no }
if {[string is integer -strict "12"] && ![string is integer -strict "1x"]} { puts integers }
set text "a;b # no comment"
# a comment; puts never \
puts never either
puts "$text \[kept\] \$kept {braces $total}"
puts {no $substitution [here]}
set name total
puts [set $name]; puts [set ::total]; puts ${total}
array set ages {ann 31 bob 42}
puts "$ages(ann) [array size ages] [info exists ages(eve)]"
rename greet welcome
puts [info commands greet]<[info commands welcome]>
puts [eval [list welcome moon]]
set code {puts "evaluated $total"}
eval $code
puts [subst -nocommands {total is $total [not run]}]
puts [lindex {a {b c} d} 1][lindex {a b c} end-1]
puts [format "%05d|%-6s|%6.2f|%x" 42 ab 3.14159 255]
puts [string map {a 1 b 2} aabbc]
puts [expr {3 / 2}][expr {-3 / 2}][expr {-3 % 2}][expr {7.0 / 2}][expr {2 ** 10}]
puts [expr 1 + 2]
puts [lsort -integer {10 9 2}] ; puts [lsearch {a b c} b]
return -code error "the end"
