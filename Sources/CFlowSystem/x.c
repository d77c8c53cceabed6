#include "CFlowSystem.h"
int flowsystem_probe(void){return 1;}
